import type { Clock, Timer } from '../../clock.js'
import type { Awaitable } from '../contract.js'

/** The pause before a further attempt grows from the first to the second of these, in milliseconds. */
const MIN_PAUSE = 50
const MAX_PAUSE = 2000

/**
 * Keeps a connection for as long as a box is open: after one is lost it connects again, with pauses that grow, until an
 * attempt succeeds. A caller that needs the connection meanwhile shares the attempt that is under way, or makes one.
 */
export class Reconnector<Connection> {
  readonly #connect: () => Promise<Connection>
  readonly #clock: Clock
  #connection: Connection | undefined
  #attempt: Promise<Connection> | undefined
  #pause = MIN_PAUSE
  #retry: Timer | undefined
  #isClosed = false

  /** @param connect makes a connection, or rejects. It is not called again after {@link close}. */
  constructor(connect: () => Promise<Connection>, clock: Clock) {
    this.#connect = connect
    this.#clock = clock
  }

  /** The connection that works; undefined while none does. */
  get now(): Connection | undefined {
    return this.#connection
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** The connection, as soon as there is one. Rejects as the attempt does. */
  get(): Awaitable<Connection> {
    return this.#connection ?? (this.#attempt ??= this.#try().finally(() => (this.#attempt = undefined)))
  }

  /** This connection is of no use any more. True if it was the one that worked: another one is made. */
  lost(connection: Connection): boolean {
    if (this.#connection !== connection) return false
    this.#connection = undefined
    if (!this.#isClosed) this.#again()
    return true
  }

  /** Connects in the background, again and again until an attempt succeeds. */
  connectSoon(): void {
    if (this.#isClosed || this.#connection) return
    this.#retry?.cancel()
    this.#retry = this.#clock.after(this.#pause * (0.5 + Math.random() / 2), () => this.#again(), false)
    this.#pause = Math.min(2 * this.#pause, MAX_PAUSE)
  }

  /** Makes no further attempt, and gives the connection that is left, if there is one. */
  async close(): Promise<Connection | undefined> {
    this.#isClosed = true
    this.#retry?.cancel()
    const left = this.#connection ?? (await this.#attempt?.catch(() => undefined))
    this.#connection = undefined
    return left
  }

  async #try(): Promise<Connection> {
    const connection = await this.#connect()
    this.#pause = MIN_PAUSE
    return (this.#connection = connection)
  }

  #again(): void {
    if (this.#isClosed) return
    const attempt = this.get()
    if (attempt instanceof Promise) attempt.catch(() => this.connectSoon())
  }
}
