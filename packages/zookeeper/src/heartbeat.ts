import { after, now, type Timer } from './clock.js'
import { OPCODE, type Call } from './call.js'
import { calls } from './calls.js'
import { multi } from './multi.js'
import type { Request } from './requests.js'
import type { SessionProof } from './session-proof.js'

/** Carries out what a heartbeat finds necessary. */
export interface HeartbeatListener {
  /** Sends a ping, which the connected server answers by itself. */
  ping(): void
  /** Sends a request. @param answered is called when it is answered, or lost with its connection. */
  ask(call: Call<unknown>, answered: () => void): void
  /** The connected server has not answered in time. */
  silent(): void
  /** No leader has been heard of for as long as the session lasts. */
  expired(): void
}

/**
 * A server that leaves out the leader's answer for this part of the timeout is given up. Then there is time to find
 * another server while what the session holds is still certain.
 */
const SILENT_FOR = 1 / 4

/**
 * Keeps a session alive: lets the server and its leader hear of it, and notices when the server falls silent, when the
 * session must have ended, and until when it certainly has not.
 */
export class Heartbeat {
  readonly #proof: SessionProof
  readonly #listener: HeartbeatListener
  #isKeptCertain = false
  #timeout = 0
  #isConnected = false
  /** When the last request was sent that the leader has answered, and when the last packet came: clock time. */
  #ledAt = 0
  #seenAt = 0
  /** When the beat was sent that is not over, and when the next one is due: clock time. */
  #beatSentAt: number | undefined
  #beatAt = 0
  #pingedAt: number | undefined
  #timer: Timer | undefined
  readonly #uncertain: { resolve: () => void; reject: (error: Error) => void }[] = []

  constructor(proof: SessionProof, listener: HeartbeatListener) {
    this.#proof = proof
    this.#listener = listener
  }

  /** When the session is given up: clock time. */
  get livesUntil(): number {
    return this.#ledAt + this.#timeout
  }

  /** Whether a check is sent with each beat, so that the session stays certain. */
  set isKeptCertain(isKept: boolean) {
    this.#isKeptCertain = isKept
  }

  /** Settles when the session lives for certain. Rejects with what ended it. */
  async certain(): Promise<void> {
    if (now() < this.#proof.certainUntil) return
    await new Promise<void>((resolve, reject) => this.#uncertain.push({ resolve, reject }))
  }

  /** A server has welcomed the session, which asked it at `askedAt`: clock time. @param timeout milliseconds */
  welcomed(askedAt: number, timeout: number, isNew: boolean): void {
    this.#proof.welcomed(askedAt, timeout, isNew)
    this.#timeout = timeout
    this.#isConnected = true
    this.#ledAt = Math.max(this.#ledAt, askedAt)
    this.#seenAt = now()
    this.#beatSentAt = undefined
    this.#beatAt = askedAt + this.#proof.reportTime
  }

  /** Begins to beat on a connection that has welcomed the session. */
  begin(): void {
    // The welcome is a proof as soon as a quorum has committed something.
    if (this.#isKeptCertain) this.#ask(CHECK)
    this.look()
  }

  /** Ignores what becomes of a beat that is under way. */
  disconnected(): void {
    this.#isConnected = false
  }

  /** The session has ended. */
  end(why: Error): void {
    this.#isConnected = false
    this.#timer?.cancel()
    for (const { reject } of this.#uncertain.splice(0)) reject(why)
  }

  /** Does what is due, and looks again when the next thing is. */
  look(): void {
    this.#timer?.cancel()
    const time = now()
    if (time >= this.livesUntil) return this.#listener.expired()
    let next = this.livesUntil
    if (this.#isConnected) {
      if (this.#beatSentAt === undefined && time >= this.#beatAt) this.#beat()
      const silentAt = Math.max(this.#seenAt, this.#beatSentAt ?? Infinity) + this.#timeout * SILENT_FOR
      if (time >= silentAt) return this.#listener.silent()
      next = Math.min(next, this.#beatSentAt === undefined ? this.#beatAt : silentAt)
    }
    this.#timer = after(next - time, () => this.look(), false)
  }

  /** A packet has come. */
  heard(): void {
    this.#seenAt = now()
  }

  /**
   * The ping was answered. The next beat is due when the one before it, of which the server knows now, will have been
   * reported.
   */
  pinged(): void {
    if (this.#pingedAt === undefined) return
    this.#proof.answered(this.#pingedAt, this.#seenAt)
    this.#pingedAt = undefined
    this.#beatAt = this.#seenAt + this.#proof.reportTime
  }

  /** A request was answered. A server may refuse by itself what only the leader can carry out. */
  answered({ call, sentAt, heardBefore, reported }: Request, isCarriedOut: boolean): void {
    this.#proof.answered(sentAt, this.#seenAt)
    const isSync = call.opcode === OPCODE.sync
    const isChange = !call.repeatable && !isSync
    // The leader takes part in the answers of these alone.
    if (!isCarriedOut || !(isSync || isChange)) return
    this.#ledAt = Math.max(this.#ledAt, sentAt)
    this.#proof.ledAnswer(heardBefore)
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
      // With another connection the beat begins anew.
      if (!this.#isConnected) return
      this.#beatSentAt = undefined
      if (call === SYNC && this.#isKeptCertain) this.#ask(CHECK)
      this.look()
    })
  }
}

/** Is answered when the leader has been asked. On another connection the beat begins anew instead. */
const SYNC: Call<undefined> = { ...calls.sync('/'), repeatable: false }

/** Is committed by a quorum and changes nothing, also where the node is not there or the client must not read it. */
const CHECK = multi([calls.check('/', -1)])
