import { after, now, type Timer } from './clock.js'
import { OPCODE, type Call } from './call.js'
import { calls } from './calls.js'
import { multi } from './multi.js'
import type { Request } from './requests.js'
import type { SessionProof } from './session-proof.js'

/** Does what a heartbeat finds necessary. */
export interface HeartbeatListener {
  /** Sends a ping, which the connected server answers itself. */
  ping(): void
  /** Sends a request. @param answered is called when it has a reply, or is lost with its connection. */
  ask(call: Call<unknown>, answered: () => void): void
  /** Called when the connected server has not replied in time. */
  onSilent(): void
  /** Called when no leader has replied for as long as the session lasts. */
  onExpired(): void
}

/**
 * A server that has not relayed a reply of the leader for this fraction of the timeout is dropped. Then there is time
 * to find another server while the session is still certain to live.
 */
const SILENCE_FRACTION = 1 / 4

/**
 * Keeps a session alive: sends beats to the server and its leader. Detects when the server is silent, when the session
 * must have ended, and until when it certainly has not.
 */
export class Heartbeat {
  readonly #proof: SessionProof
  readonly #listener: HeartbeatListener
  #isKeptCertain = false
  #timeout = 0
  #isConnected = false
  /** When the last request was sent that the leader has answered, and when the last packet arrived, as clock time. */
  #ledAt = 0
  #seenAt = 0
  /** When the current beat was sent, and when the next one is due, as clock time. */
  #beatSentAt: number | undefined
  #beatAt = 0
  #pingedAt: number | undefined
  #timer: Timer | undefined
  readonly #uncertain: { resolve: () => void; reject: (error: Error) => void }[] = []

  constructor(proof: SessionProof, listener: HeartbeatListener) {
    this.#proof = proof
    this.#listener = listener
  }

  /** When the session is given up, as clock time. */
  get livesUntil(): number {
    return this.#ledAt + this.#timeout
  }

  /** Whether each beat also sends a check, so that the session stays certain to live. */
  set isKeptCertain(isKept: boolean) {
    this.#isKeptCertain = isKept
  }

  /** Resolves when the session certainly lives. Rejects with the error that ended it. */
  async certain(): Promise<void> {
    if (now() < this.#proof.certainUntil) return
    await new Promise<void>((resolve, reject) => this.#uncertain.push({ resolve, reject }))
  }

  /**
   * Call when a server has welcomed the session, which asked it at `askedAt`, as clock time. @param timeout in
   * milliseconds
   */
  welcomed(askedAt: number, timeout: number, isNew: boolean): void {
    this.#proof.welcomed(askedAt, timeout, isNew)
    this.#timeout = timeout
    this.#isConnected = true
    this.#ledAt = Math.max(this.#ledAt, askedAt)
    this.#seenAt = now()
    this.#beatSentAt = undefined
    this.#beatAt = askedAt + this.#proof.reportTime
  }

  /** Starts to beat on a connection that has welcomed the session. */
  begin(): void {
    // The welcome proves that the session lives once a quorum has committed something.
    if (this.#isKeptCertain) this.#ask(CHECK)
    this.check()
  }

  /** Call when the connection is lost. The current beat is ignored. */
  disconnected(): void {
    this.#isConnected = false
  }

  /** Call when the session has ended. */
  end(why: Error): void {
    this.#isConnected = false
    this.#timer?.cancel()
    for (const { reject } of this.#uncertain.splice(0)) reject(why)
  }

  /** Does what is due, and schedules the next check. */
  check(): void {
    this.#timer?.cancel()
    const time = now()
    if (time >= this.livesUntil) return this.#listener.onExpired()
    let next = this.livesUntil
    if (this.#isConnected) {
      if (this.#beatSentAt === undefined && time >= this.#beatAt) this.#beat()
      const silentAt = Math.max(this.#seenAt, this.#beatSentAt ?? Infinity) + this.#timeout * SILENCE_FRACTION
      if (time >= silentAt) return this.#listener.onSilent()
      next = Math.min(next, this.#beatSentAt === undefined ? this.#beatAt : silentAt)
    }
    this.#timer = after(next - time, () => this.check(), false)
  }

  /** Call for each packet. */
  received(): void {
    this.#seenAt = now()
  }

  /**
   * Call when the ping was answered. The next beat is due when the server will have reported the session, of which it
   * knows now, to its leader.
   */
  pinged(): void {
    if (this.#pingedAt === undefined) return
    this.#proof.answered(this.#pingedAt, this.#seenAt)
    this.#pingedAt = undefined
    this.#beatAt = this.#seenAt + this.#proof.reportTime
  }

  /** Call when a request was answered. A server may refuse a request without asking the leader. */
  answered({ call, sentAt, answeredBefore, reported }: Request, isApplied: boolean): void {
    this.#proof.answered(sentAt, this.#seenAt)
    const isSync = call.opcode === OPCODE.sync
    const isChange = !call.repeatable && !isSync
    // Only these replies come through the leader.
    if (!isApplied || !(isSync || isChange)) return
    this.#ledAt = Math.max(this.#ledAt, sentAt)
    this.#proof.ledAnswer(answeredBefore)
    if (!isChange) return
    this.#proof.quorumAnswer(reported)
    if (this.#seenAt < this.#proof.certainUntil)
      for (const { resolve } of this.#uncertain.splice(0)) resolve()
  }

  #beat(): void {
    this.#pingedAt = now()
    this.#listener.ping()
    this.#ask(SYNC)
  }

  #ask(call: Call<unknown>): void {
    this.#beatSentAt = now()
    this.#listener.ask(call, () => {
      // On another connection, a new beat begins.
      if (!this.#isConnected) return
      this.#beatSentAt = undefined
      if (call === SYNC && this.#isKeptCertain) this.#ask(CHECK)
      this.check()
    })
  }
}

/** Is answered after the leader was asked. On another connection, a new beat begins instead. */
const SYNC: Call<undefined> = { ...calls.sync('/'), repeatable: false }

/** Is committed by a quorum and changes nothing, even if the node does not exist or the client may not read it. */
const CHECK = multi([calls.check('/', -1)])
