import {
  ConnectionLossError,
  NodeExistsError,
  NoNodeError,
  SessionExpiredError,
  ZooKeeper,
} from '../index.js'
import { UnavailableError } from 'signalbox'
import { Reconnector, boxClosed, inTime, type Awaitable } from 'signalbox/engine'
import type { BoxContext } from './box-context.js'
import { makeFolders } from './folders.js'

/** Receives the events of the sessions of a box. */
export interface BoxSessionListener {
  /** Called when a session has begun. The session is not used before the promise resolves. */
  onBegin(client: ZooKeeper): Promise<void>
  /** Called when another client has deleted nodes of this session, and notified it. */
  onNodesDeleted(client: ZooKeeper): void
  /** Called when the session has ended, and with it everything that it created. */
  onEnd(cause: Error): void
}

/** Maximum time to connect, in milliseconds. */
const CONNECT_TIMEOUT = 10_000
/** A call waits at least this long for the session after one that has ended, in milliseconds: several round trips. */
const MIN_TIME = 2000

/** The session of a box. When it ends, another one begins. */
export class BoxSession {
  readonly #box: BoxContext
  readonly #listener: BoxSessionListener
  readonly #reconnector: Reconnector<ZooKeeper>

  constructor(box: BoxContext, listener: BoxSessionListener) {
    this.#box = box
    this.#listener = listener
    this.#reconnector = new Reconnector(() => this.#connect(), box.clock)
  }

  /** The client of the current session; undefined if there is none. */
  get now(): ZooKeeper | undefined {
    return this.#reconnector.now
  }

  /** The clock time until which a call that begins now waits for sessions. A request lives as long as its session. */
  get deadline(): number {
    const { clock, place } = this.#box
    return clock.now() + Math.max(place.connect.sessionTimeout, CONNECT_TIMEOUT) + MIN_TIME
  }

  /**
   * Returns the client as soon as there is a session.
   * @param deadline that of the call, which may have lost an earlier session.
   * @throws UnavailableError if none begins in time; ClosedError
   */
  get(deadline = this.deadline): Awaitable<ZooKeeper> {
    const client = this.#reconnector.get()
    if (!(client instanceof Promise)) return client
    const { clock, place } = this.#box
    const limit = Math.max(deadline - clock.now(), MIN_TIME)
    const late = () =>
      new UnavailableError(`no server of ${place.name} began a session in time`, { engine: place.name })
    return inTime(client, limit, clock, late)
  }

  /** Does work that changes nothing. If the session ends in the meantime, does it again in the next one. */
  async run<T>(work: (client: ZooKeeper) => Promise<T>): Promise<T> {
    const { deadline } = this
    for (;;) {
      const client = await this.get(deadline)
      try {
        return await work(client)
      } catch (error) {
        if (!(error instanceof SessionExpiredError)) throw error
      }
    }
  }

  /** Ends the session. Never throws. */
  async close(): Promise<void> {
    const client = await this.#reconnector.close()
    await client?.close()
  }

  async #connect(): Promise<ZooKeeper> {
    const { ensemble, name: engine, connect } = this.#box.place
    this.#assertOpen()
    const client = await ZooKeeper.connect(ensemble, { ...connect, timeout: CONNECT_TIMEOUT })
    client.onState(state => {
      if ((state === 'expired' || state === 'closed') && this.#reconnector.lost(client))
        this.#listener.onEnd(new Error(`the ZooKeeper session of ${engine} has expired`))
    })
    try {
      await this.#begin(client)
    } catch (cause) {
      await client.close()
      if (!(cause instanceof SessionExpiredError)) throw cause
      throw new UnavailableError(`the ZooKeeper session of ${engine} ended while the box was opening`, {
        engine,
        cause,
      })
    }
    return client
  }

  async #begin(client: ZooKeeper): Promise<void> {
    const { paths, member } = this.#box
    await makeFolders(client, this.#box)
    this.#assertOpen()
    const { session, ...about } = member
    const path = paths.session(session)
    await this.#createOwn(client, path, JSON.stringify(about))
    await client.onChange(path, ({ type }) => {
      if (type !== 'ended') this.#listener.onNodesDeleted(client)
    })
    await this.#listener.onBegin(client)
  }

  #assertOpen(): void {
    if (this.#reconnector.isClosed) throw boxClosed(this.#box.place.name)
  }

  /** Creates the box's own node. Replaces the one of its previous session if that still exists. */
  async #createOwn(client: ZooKeeper, path: string, text: string): Promise<void> {
    const options = { ephemeral: true, acl: this.#box.place.acl }
    let hasPrevious = false
    for (;;) {
      try {
        if (hasPrevious) await client.transaction().delete(path).create(path, text, options).commit()
        else this.#box.time.observe((await client.create(path, text, options)).stat)
        return
      } catch (error) {
        if (error instanceof NodeExistsError) hasPrevious = true
        // The server has ended the previous session in the meantime.
        else if (error instanceof NoNodeError && hasPrevious) hasPrevious = false
        else if (!(error instanceof ConnectionLossError)) throw error
      }
    }
  }
}
