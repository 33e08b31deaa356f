/**
 * What the answers of servers prove about the end of a session.
 *
 * The leader alone ends sessions: `timeout` after it has heard of one last, rounded up to its next tick
 * (`SessionTrackerImpl.touchSession`, `ExpiryQueue.roundToNextInterval`). It does not hear of a session by what the
 * session asks for. A follower notes in a table which sessions have sent it anything (`ZooKeeperServer.touch`,
 * `LearnerSessionTracker.touchSession`), and sends that table with its reply to the leader's next ping
 * (`Learner.ping`, `LearnerHandler.run`). A write that comes by a follower only finds out that the session has not
 * ended yet (`PrepRequestProcessor`, `checkSession`), and may be the last one before the end. So no answer by itself
 * says how long the session lasts. Three in a row do:
 *
 * 1. A packet `q` was answered: the follower has noted the session by then.
 * 2. A request `y` was sent {@link reportTime} later or more, and answered by way of the leader. What the leader
 *    sends a follower stays in order, and it pings every half tick (`Leader.lead`), so a ping came before that answer
 *    which was sent after `q` was answered. The reply to it told of the session, unless an earlier one did.
 * 3. A write `w` was sent when `y` had been answered, and was put through a quorum. What a follower sends the leader
 *    stays in order, too, so the leader had that reply before it took up `w`, and has heard of the session after `q`
 *    was sent.
 *
 * The quorum says that no other leader had begun when `w` was sent; one that begins later gives each session its
 * whole time anew (`LeaderZooKeeperServer.createSessionTracker`, called behind the quorum for its epoch). So the
 * session lives until `timeout` after `q` was sent. A failed multi counts as a write, because its failure goes
 * through the quorum.
 *
 * A welcome stands for 1 and 2: the leader has heard of the session before it lets it have another connection
 * (`Leader.revalidateSession`), and the connection ends when the server leaves that leader. A session's first welcome
 * stands for all three, because its creation is a write.
 */
export class SessionProof {
  /** The packets that were answered within the last {@link reportTime}, the oldest first. */
  #heard: { readonly sentAt: number; readonly answeredAt: number }[] = []
  /** When the newest one was sent of those that were answered before: clock time. */
  #heardBefore = 0
  #reported = 0
  #certainUntil = 0
  #timeout = 0

  /** Until when the session lives for certain: clock time. */
  get certainUntil(): number {
    return this.#certainUntil
  }

  /** When the newest packet was sent that the server has told the leader of, or is about to: clock time. */
  get reported(): number {
    return this.#reported
  }

  /**
   * A ping of the leader may come so late: milliseconds. It is half a tick, which is a quarter of the shortest session
   * that servers allow unless they are configured otherwise, and a third of that for a leader whose threads are slow.
   */
  get reportTime(): number {
    return this.#timeout / 3
  }

  /** A server has welcomed the session, which asked it at `askedAt`: clock time. @param timeout milliseconds */
  welcomed(askedAt: number, timeout: number, isNew: boolean): void {
    this.#heard = []
    this.#heardBefore = this.#reported = askedAt
    this.#timeout = timeout
    const until = askedAt + timeout
    this.#certainUntil = isNew ? until : Math.min(this.#certainUntil, until)
  }

  /** A packet was answered: step 1. */
  answered(sentAt: number, now: number): void {
    const last = this.#heard.at(-1)
    // So close together they prove about the same.
    if (last && now - last.answeredAt < this.reportTime / 16) return
    this.#heard.push({ sentAt, answeredAt: now })
  }

  /** What a request that is sent now makes known as reported by its answer: when that packet was sent. */
  reportedBy(now: number): number {
    while (this.#heard.length > 0 && this.#heard[0]!.answeredAt <= now - this.reportTime)
      this.#heardBefore = Math.max(this.#heardBefore, this.#heard.shift()!.sentAt)
    return this.#heardBefore
  }

  /** The leader has answered a request: step 2. @param heardBefore what `reportedBy` gave when it was sent. */
  ledAnswer(heardBefore: number): void {
    this.#reported = Math.max(this.#reported, heardBefore)
  }

  /** A quorum has put a request through: step 3. @param reported what that was when it was sent. */
  quorumAnswer(reported: number): void {
    this.#certainUntil = Math.max(this.#certainUntil, reported + this.#timeout)
  }
}
