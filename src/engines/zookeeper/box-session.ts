import {
  ConnectionLossError,
  NodeExistsError,
  NoNodeError,
  SessionExpiredError,
  ZooKeeper,
} from 'signalbox-zookeeper'
import type { Awaitable } from '../../engine/contract.js'
import { Reconnector } from '../../engine/kit/reconnector.js'
import { ClosedError, UnavailableError } from '../../errors.js'
import type { BoxContext } from './box-context.js'
import { makeFolders } from './folders.js'

/** Is told of the sessions of a box. */
export interface BoxSessionListener {
  /** A session has begun. Nothing is asked of it before this settles. */
  begun(client: ZooKeeper): Promise<void>
  /** Another client has deleted nodes of this session, and has said so. */
  nodesTaken(client: ZooKeeper): void
  /** The session is over, and with it everything that was created in it. */
  over(cause: Error): void
}

/** How long connecting may take: milliseconds. */
const PATIENCE = 10_000

/** The session of a box. After the end of one session another one begins. */
export class BoxSession {
  readonly #box: BoxContext
  readonly #listener: BoxSessionListener
  readonly #reconnector: Reconnector<ZooKeeper>

  constructor(box: BoxContext, listener: BoxSessionListener) {
    this.#box = box
    this.#listener = listener
    this.#reconnector = new Reconnector(() => this.#connect(), box.clock)
  }

  /** The client of the session that lives now; undefined while there is none. */
  get now(): ZooKeeper | undefined {
    return this.#reconnector.now
  }

  /** The client, as soon as a session lives. @throws UnavailableError when none begins in time; ClosedError */
  get(): Awaitable<ZooKeeper> {
    return this.#reconnector.get()
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
    const client = await this.#reconnector.close()
    await client?.close()
  }

  async #connect(): Promise<ZooKeeper> {
    const { ensemble, name: engine, connect } = this.#box.place
    this.#assertOpen()
    const client = await ZooKeeper.connect(ensemble, { ...connect, timeout: PATIENCE })
    client.onState(state => {
      if ((state === 'expired' || state === 'closed') && this.#reconnector.lost(client))
        this.#listener.over(new Error(`the ZooKeeper session of ${engine} has expired`))
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
    await this.#makeOwn(client, path, JSON.stringify(about))
    await client.onChange(path, ({ type }) => {
      if (type !== 'ended') this.#listener.nodesTaken(client)
    })
    await this.#listener.begun(client)
  }

  #assertOpen(): void {
    if (this.#reconnector.isClosed)
      throw new ClosedError('the box was closed', { engine: this.#box.place.name })
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
        // The server has ended the previous session meanwhile.
        else if (error instanceof NoNodeError && isThere) isThere = false
        else if (!(error instanceof ConnectionLossError)) throw error
      }
    }
  }
}
