import { after, now, type Timer } from './clock.js'
import { OPCODE, type Call } from './call.js'
import { calls } from './calls.js'
import { multi } from './multi.js'
import type { Request } from './requests.js'
import type { SessionProof } from './session-proof.js'

/** Executes the actions of a heartbeat. */
export interface HeartbeatListener {
  /** Sends a ping, which the connected server answers itself. */
  ping(): void
  /** Sends a request. @param answered called when it has a reply, or is lost with its connection. */
  ask(call: Call<unknown>, answered: () => void): void
  /** Called when the connected server has not replied in time. */
  onSilent(): void
  /** Called when no leader has replied for as long as the session lasts. */
  onExpired(): void
}

/**
 * Fraction of the timeout after which a server is dropped if it has not relayed a reply of the leader. The rest of the
 * timeout is for finding another server while the session is still certain to live.
 */
const SILENCE_FRACTION = 1 / 4

/**
 * Keeps a session alive by sending beats to the server and its leader. Detects a silent server and the end of the
 * session, and provides the time until which the session certainly lives.
 */
export class Heartbeat {
  readonly #proof: SessionProof
  readonly #listener: HeartbeatListener
  #isKeptCertain = false
  #timeout = 0
  #isConnected = false
  /** Clock times of the last request that the leader has answered, and of the last packet that arrived. */
  #ledAt = 0
  #seenAt = 0
  /** Clock times of the current beat, and of the next one. */
  #beatSentAt: number | undefined
  #beatAt = 0
  #pingedAt: number | undefined
  #timer: Timer | undefined
  readonly #uncertain: { resolve: () => void; reject: (error: Error) => void }[] = []

  constructor(proof: SessionProof, listener: HeartbeatListener) {
    this.#proof = proof
    this.#listener = listener
  }

  /** The clock time at which the session is given up. */
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
   * Call when a server has welcomed the session.
   * @param askedAt clock time at which the session asked for it. @param timeout milliseconds.
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

  /** Executes the actions that are due, and schedules the next check. */
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
   * Call when the ping was answered. The server now knows of the session. The next beat is due when the server will
   * have reported the session to its leader.
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

/** A request that the server answers after asking the leader. On another connection, a new beat replaces it. */
const SYNC: Call<undefined> = { ...calls.sync('/'), repeatable: false }

/**
 * A request that a quorum commits and that changes nothing, even if the node does not exist or the client may not read
 * it.
 */
const CHECK = multi([calls.check('/', -1)])
