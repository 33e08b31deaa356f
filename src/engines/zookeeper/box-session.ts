import type { Timer } from '../../clock.js'
import { ClosedError, UnavailableError } from '../../errors.js'
import type { BoxContext } from './box-context.js'
import {
  ConnectionLossError,
  NodeExistsError,
  NoNodeError,
  SessionExpiredError,
  ZooKeeper,
} from './client/index.js'
import { makeFolders } from './folders.js'

/** Is told of the sessions of a box. */
export interface BoxSessionListener {
  /** A session has begun. Nothing is asked of it before this settles. */
  begun(client: ZooKeeper): Promise<void>
  /** Another client has taken something from this session. */
  robbed(client: ZooKeeper): void
  /** The session is over, and with it everything that was created in it. */
  over(cause: Error): void
}

/** How long connecting may take: milliseconds. */
const PATIENCE = 10_000
const RETRY_PAUSE = 200

/** The session of a box. After the end of one session another one begins. */
export class BoxSession {
  readonly #box: BoxContext
  readonly #listener: BoxSessionListener
  #client: ZooKeeper | undefined
  #coming: Promise<ZooKeeper> | undefined
  #retry: Timer | undefined
  #isClosed = false

  constructor(box: BoxContext, listener: BoxSessionListener) {
    this.#box = box
    this.#listener = listener
  }

  /** The client of the session that lives now; undefined while there is none. */
  get now(): ZooKeeper | undefined {
    return this.#client
  }

  /** The client, as soon as a session lives. @throws UnavailableError when none begins in time; ClosedError */
  get(): ZooKeeper | Promise<ZooKeeper> {
    return this.#client ?? (this.#coming ??= this.#connect().finally(() => (this.#coming = undefined)))
  }

  /** Does work that changes nothing. When the session ends meanwhile, it is done again in the next one. */
  async run<T>(work: (client: ZooKeeper) => Promise<T>): Promise<T> {
    for (;;) {
      const client = await this.get()
      try {
        return await work(client)
      } catch (error) {
        if (!(error instanceof SessionExpiredError)) throw error
      }
    }
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
    const { ensemble, name: engine, connect } = this.#box.place
    this.#assertOpen()
    const client = await ZooKeeper.connect(ensemble, { ...connect, timeout: PATIENCE })
    client.onState(state => {
      if (state === 'expired' || state === 'closed') this.#over(client)
    })
    try {
      await this.#begin(client)
    } catch (cause) {
      await client.close()
      if (!(cause instanceof SessionExpiredError)) throw cause
      throw new UnavailableError(`a session of ${engine} ended before it was of any use`, { engine, cause })
    }
    this.#client = client
    return client
  }

  async #begin(client: ZooKeeper): Promise<void> {
    const { place, places, member } = this.#box
    await makeFolders(client, places, place.acl)
    this.#assertOpen()
    const { session, ...about } = member
    const path = places.session(session)
    await this.#makeOwn(client, path, JSON.stringify(about))
    await client.onChange(path, ({ type }) => {
      if (type !== 'ended') this.#listener.robbed(client)
    })
    await this.#listener.begun(client)
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new ClosedError('the box was closed', { engine: this.#box.place.name })
  }

  /** Creates the box's own node, in the place of that of its session before, if that is still there. */
  async #makeOwn(client: ZooKeeper, path: string, text: string): Promise<void> {
    const options = { ephemeral: true, acl: this.#box.place.acl }
    let isThere = false
    for (;;) {
      try {
        if (isThere) await client.transaction().delete(path).create(path, text, options).commit()
        else this.#box.time.saw((await client.create(path, text, options)).stat)
        return
      } catch (error) {
        if (error instanceof NodeExistsError) isThere = true
        // The server has just ended the session before.
        else if (error instanceof NoNodeError && isThere) isThere = false
        else if (!(error instanceof ConnectionLossError)) throw error
      }
    }
  }

  #over(client: ZooKeeper): void {
    if (this.#client !== client) return
    this.#client = undefined
    if (this.#isClosed) return
    this.#listener.over(new Error(`the ZooKeeper session of ${this.#box.place.name} has expired`))
    this.#reconnect()
  }

  /** Begins a session at once, because stores may be watched, and again and again until the box is closed. */
  #reconnect(): void {
    const attempt = this.get()
    if (!(attempt instanceof Promise)) return
    attempt.catch(() => {
      if (this.#isClosed || this.#client) return
      this.#retry = this.#box.clock.after(RETRY_PAUSE, () => this.#reconnect(), false)
    })
  }
}
