import type { Clock, Timer } from '../../clock.js'
import { ClosedError, UnavailableError } from '../../errors.js'
import { SessionExpiredError, ZooKeeper, type ConnectOptions } from './client/index.js'

/** Who is told of sessions. */
export interface ConnectedListener {
  /** A session has begun; nothing is asked of it before this settles. */
  begun(client: ZooKeeper): Promise<void>
  /** The session is over, and with it all that was created in it. */
  over(cause: Error): void
}

const RETRY_PAUSE = 200

/**
 * A client whose session has not expired: after the end of one session another one begins, and whoever had something in
 * the old one was told before.
 */
export class Connected {
  readonly #ensemble: string
  readonly #options: ConnectOptions
  readonly #engine: string
  readonly #clock: Clock
  readonly #listener: ConnectedListener
  #client: ZooKeeper | undefined
  #coming: Promise<ZooKeeper> | undefined
  #retry: Timer | undefined
  #isClosed = false

  constructor(
    ensemble: string,
    options: ConnectOptions,
    engine: string,
    clock: Clock,
    listener: ConnectedListener,
  ) {
    this.#ensemble = ensemble
    this.#options = options
    this.#engine = engine
    this.#clock = clock
    this.#listener = listener
  }

  /** The client of the session that lives now; undefined while none does. */
  get now(): ZooKeeper | undefined {
    return this.#client
  }

  /** The client, as soon as a session lives. @throws UnavailableError when none begins in time; ClosedError */
  get(): ZooKeeper | Promise<ZooKeeper> {
    return this.#client ?? (this.#coming ??= this.#connect().finally(() => (this.#coming = undefined)))
  }

  /** Ends the session. Never throws. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#retry?.cancel()
    const client = this.#client ?? (await this.#coming?.catch(() => undefined))
    this.#client = undefined
    await client?.close()
  }

  async #connect(): Promise<ZooKeeper> {
    if (this.#isClosed) throw new ClosedError('the box was closed', { engine: this.#engine })
    const client = await ZooKeeper.connect(this.#ensemble, this.#options)
    client.onState(state => {
      if (state === 'expired' || state === 'closed') this.#over(client)
    })
    try {
      await this.#listener.begun(client)
    } catch (cause) {
      await client.close()
      if (!(cause instanceof SessionExpiredError)) throw cause
      throw new UnavailableError(`a session of ${this.#engine} ended before it was of any use`, {
        engine: this.#engine,
        cause,
      })
    }
    this.#client = client
    return client
  }

  #over(client: ZooKeeper): void {
    if (this.#client !== client) return
    this.#client = undefined
    if (this.#isClosed) return
    this.#listener.over(new Error(`the ZooKeeper session of ${this.#engine} has expired`))
    this.#reconnect()
  }

  /** At once, because stores may be watched; again and again, as long as no box is closed. */
  #reconnect(): void {
    const attempt = this.get()
    if (!(attempt instanceof Promise)) return
    attempt.catch(() => {
      if (this.#isClosed || this.#client) return
      this.#retry = this.#clock.after(RETRY_PAUSE, () => this.#reconnect(), false)
    })
  }
}
