import type { Clock, Timer } from '../../base/clock.js'
import type { Awaitable } from '../contract.js'

/** Bounds of the back-off between attempts, in milliseconds. */
const MIN_PAUSE = 50
const MAX_PAUSE = 2000

/**
 * Keeps a connection open: when it is lost, connects again with exponential back-off. A caller that needs the
 * connection shares the current attempt, or starts one.
 */
export class Reconnector<Connection> {
  readonly #connect: () => Promise<Connection>
  readonly #clock: Clock
  #connection: Connection | undefined
  #attempt: Promise<Connection> | undefined
  #pause = MIN_PAUSE
  #retry: Timer | undefined
  #isClosed = false

  /** @param connect opens a connection, or rejects. It is not called after {@link close}. */
  constructor(connect: () => Promise<Connection>, clock: Clock) {
    this.#connect = connect
    this.#clock = clock
  }

  /** The current connection; undefined if there is none. */
  get now(): Connection | undefined {
    return this.#connection
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Returns the connection, or waits for an attempt to open one. Rejects as the attempt does. */
  get(): Awaitable<Connection> {
    return this.#connection ?? (this.#attempt ??= this.#try().finally(() => (this.#attempt = undefined)))
  }

  /** Called when a connection is broken. If it was the current one, returns true, and connects again. */
  lost(connection: Connection): boolean {
    // mutant: old-loss-ends-connection
    if (this.#connection !== connection) return false
    this.#connection = undefined
    if (!this.#isClosed) this.#again()
    return true
  }

  /** Connects in the background, with retries until an attempt succeeds. */
  connectSoon(): void {
    if (this.#isClosed || this.#connection) return
    this.#retry?.cancel()
    this.#retry = this.#clock.after(this.#pause * (0.5 + Math.random() / 2), () => this.#again(), false)
    this.#pause = Math.min(2 * this.#pause, MAX_PAUSE)
  }

  /** Stops all attempts, and returns the current connection, if there is one. */
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
