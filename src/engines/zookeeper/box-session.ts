import type { Clock, Timer } from '../../clock.js'
import type { SessionInfo } from '../../engine/contract.js'
import { ClosedError, UnavailableError } from '../../errors.js'
import {
  ConnectionLossError,
  NodeExistsError,
  NoNodeError,
  SessionExpiredError,
  ZooKeeper,
} from './client/index.js'
import { connectOptions } from './connect-options.js'
import { makeFolders } from './folders.js'
import type { Places } from './names.js'
import type { ServerTime } from './server-time.js'
import type { ZooKeeperPlace } from './zookeeper-url.js'

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
  readonly #place: ZooKeeperPlace
  readonly #places: Places
  readonly #member: SessionInfo
  readonly #time: ServerTime
  readonly #clock: Clock
  readonly #listener: BoxSessionListener
  #client: ZooKeeper | undefined
  #coming: Promise<ZooKeeper> | undefined
  #retry: Timer | undefined
  #isClosed = false

  constructor(
    place: ZooKeeperPlace,
    places: Places,
    member: SessionInfo,
    time: ServerTime,
    clock: Clock,
    listener: BoxSessionListener,
  ) {
    this.#place = place
    this.#places = places
    this.#member = member
    this.#time = time
    this.#clock = clock
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
    const { ensemble, name: engine } = this.#place
    this.#assertOpen()
    const client = await ZooKeeper.connect(ensemble, { ...connectOptions(this.#place), timeout: PATIENCE })
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
    await makeFolders(client, this.#places, this.#place.acl)
    this.#assertOpen()
    const { session, ...about } = this.#member
    const path = this.#places.session(session)
    await this.#makeOwn(client, path, JSON.stringify(about))
    await client.onChange(path, ({ type }) => {
      if (type !== 'ended') this.#listener.robbed(client)
    })
    await this.#listener.begun(client)
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new ClosedError('the box was closed', { engine: this.#place.name })
  }

  /** Creates the box's own node, in the place of that of its session before, if that is still there. */
  async #makeOwn(client: ZooKeeper, path: string, text: string): Promise<void> {
    const options = { ephemeral: true, acl: this.#place.acl }
    let isThere = false
    for (;;) {
      try {
        if (isThere) await client.transaction().delete(path).create(path, text, options).commit()
        else this.#time.saw((await client.create(path, text, options)).stat)
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
    this.#listener.over(new Error(`the ZooKeeper session of ${this.#place.name} has expired`))
    this.#reconnect()
  }

  /** Begins a session at once, because stores may be watched, and again and again until the box is closed. */
  #reconnect(): void {
    const attempt = this.get()
    if (!(attempt instanceof Promise)) return
    attempt.catch(() => {
      if (this.#isClosed || this.#client) return
      this.#retry = this.#clock.after(RETRY_PAUSE, () => this.#reconnect(), false)
    })
  }
}
