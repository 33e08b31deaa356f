/**
 * Computes from the replies of servers the time until which a session certainly lives.
 *
 * Only the leader ends sessions: `timeout` after it last learned that one is alive, rounded up to its next tick
 * (`SessionTrackerImpl.touchSession`, `ExpiryQueue.roundToNextInterval`). It does not learn that from the requests of a
 * session. A follower records which sessions have sent it anything (`ZooKeeperServer.touch`,
 * `LearnerSessionTracker.touchSession`), and sends this table with its reply to the leader's next ping (`Learner.ping`,
 * `LearnerHandler.run`). A write that comes through a follower only checks that the session has not ended yet
 * (`PrepRequestProcessor`, `checkSession`), and may be the last one before the end. So no reply by itself proves how
 * long the session lasts. Three in a row do:
 *
 * 1. A packet `q` was answered: the follower has recorded the session by then.
 * 2. A request `y` was sent at least {@link reportTime} later, and answered through the leader. Messages of the leader
 *    to a follower stay in order, and it pings every half tick (`Leader.lead`). So before that reply, the follower
 *    received a ping that was sent after `q` was answered. The reply to it reported the session, unless an earlier one
 *    did.
 * 3. A write `w` was sent after `y` was answered, and a quorum committed it. Messages of a follower to the leader stay
 *    in order, too, so the leader received that report before it processed `w`, and learned that the session was alive
 *    after `q` was sent.
 *
 * The quorum proves that no other leader had begun when `w` was sent. One that begins later gives each session its
 * whole timeout again (`LeaderZooKeeperServer.createSessionTracker`, called after the quorum for its epoch). So the
 * session lives until `timeout` after `q` was sent. A failed multi counts as a write, because a quorum commits its
 * failure.
 *
 * A welcome stands for 1 and 2: the leader learns of the session before it lets it have another connection
 * (`Leader.revalidateSession`), and the connection ends when the server leaves that leader. A session's first welcome
 * stands for all three, because its creation is a write.
 */
export class SessionProof {
  /** The packets that were answered within the last {@link reportTime}, oldest first. */
  #answered: { readonly sentAt: number; readonly answeredAt: number }[] = []
  /** Clock time at which the newest of the packets that were answered longer ago was sent. */
  #answeredBefore = 0
  #reported = 0
  #certainUntil = 0
  #timeout = 0

  /** The clock time until which the session certainly lives. */
  get certainUntil(): number {
    return this.#certainUntil
  }

  /** The clock time of the newest packet that the server has reported to the leader, or is about to report. */
  get reported(): number {
    return this.#reported
  }

  /**
   * Maximum delay of a ping of the leader, in milliseconds. It is half a tick, which is a quarter of the shortest
   * session that servers allow by default, and a third of that for a leader whose threads are slow.
   */
  get reportTime(): number {
    return this.#timeout / 3
  }

  /**
   * Call when a server has welcomed the session.
   * @param askedAt clock time at which the session asked for it. @param timeout milliseconds.
   */
  welcomed(askedAt: number, timeout: number, isNew: boolean): void {
    this.#answered = []
    this.#answeredBefore = this.#reported = askedAt
    this.#timeout = timeout
    const until = askedAt + timeout
    this.#certainUntil = isNew ? until : Math.min(this.#certainUntil, until)
  }

  /** Call when a packet was answered: step 1. */
  answered(sentAt: number, now: number): void {
    const last = this.#answered.at(-1)
    // If they are this close together, they prove about the same.
    if (last && now - last.answeredAt < this.reportTime / 16) return
    this.#answered.push({ sentAt, answeredAt: now })
  }

  /** Returns the clock time of the packet that the reply to a request sent now will prove to be reported. */
  reportedBy(now: number): number {
    while (this.#answered.length > 0 && this.#answered[0]!.answeredAt <= now - this.reportTime)
      this.#answeredBefore = Math.max(this.#answeredBefore, this.#answered.shift()!.sentAt)
    return this.#answeredBefore
  }

  /**
   * Call when the leader has answered a request: step 2.
   * @param answeredBefore the result of `reportedBy` when the request was sent.
   */
  ledAnswer(answeredBefore: number): void {
    this.#reported = Math.max(this.#reported, answeredBefore)
  }

  /** Call when a quorum has committed a request: step 3. @param reported `reported` when the request was sent. */
  quorumAnswer(reported: number): void {
    this.#certainUntil = Math.max(this.#certainUntil, reported + this.#timeout)
  }
}
