import {
  afterSilence,
  boxClosed,
  type Alive,
  type Awaitable,
  type Clock,
  type Engine,
  type Listener,
  type Operation,
  type OutcomeOf,
  type SessionInfo,
} from 'signalbox/engine'
import { Admin } from './admin.js'
import { BoxSession } from './box-session.js'
import { failureOf } from './failure.js'
import { ZOOKEEPER_GUARANTEES } from './guarantees.js'
import { LockRequests } from './lock-requests.js'
import { NodePaths } from './names.js'
import { ServerTime } from './server-time.js'
import { Stores } from './stores.js'
import { Values } from './values.js'
import type { ZooKeeperPlace } from './zookeeper-url.js'

/** The parts of a box that has joined. */
interface Parts {
  readonly session: BoxSession
  readonly requests: LockRequests
  readonly stores: Stores
  readonly admin: Admin
}

/**
 * Locks and values as nodes of ZooKeeper. There is no lock table: the servers keep the order, so nothing is reserved
 * and `sweepExpired` does nothing. The engine watches the queues of its waiters itself, and wakes the local queue when
 * a request is free. Then `checkIn` costs no packet. A request that does not check in within the claim window loses its
 * place. Leases are timers of the engine, limited by `certainUntil`.
 */
export class ZooKeeperEngine implements Engine {
  readonly name: string
  readonly guarantees = ZOOKEEPER_GUARANTEES
  readonly reportsContention = false
  readonly coversBySigns = true
  readonly #place: ZooKeeperPlace
  readonly #clock: Clock
  readonly #ready: ReturnType<typeof afterSilence>
  /** Undefined before the box has joined and after it has left. */
  #parts: Parts | undefined

  constructor(place: ZooKeeperPlace, clock: Clock) {
    this.name = place.name
    this.#place = place
    this.#clock = clock
    this.#ready = afterSilence(clock)
  }

  certainUntil(): number {
    // The client has its own clock. Reading this one first makes the result early rather than late.
    const now = this.#clock.now()
    return now + (this.#parts?.session.now?.certainFor ?? -Infinity)
  }

  async join(member: SessionInfo, listener: Listener): Promise<void> {
    this.#parts = this.#partsOf(member, listener)
    try {
      await this.#parts.session.get()
    } catch (error) {
      this.#parts = undefined
      throw failureOf(error, this.name)
    }
  }

  submit<O extends Operation>(operation: O): Awaitable<OutcomeOf<O>>
  submit(operation: Operation): Awaitable<unknown> {
    const parts = this.#parts
    if (!parts) return Promise.reject(boxClosed(this.name))
    // It sends nothing, and after a freeze it must come before the requests expire.
    if (operation.type === 'alive') return parts.requests.alive(operation)
    // If the session has ended, no request can find out whether a write in it was applied. All operations wait alike,
    // so that none overtakes a write.
    return this.#ready(async () => this.#execute(parts, operation)).catch((error: unknown) => {
      throw failureOf(error, this.name, keysOf(operation))
    })
  }

  async wallClock(): Promise<number> {
    if (!this.#parts) throw boxClosed(this.name)
    try {
      return await this.#parts.admin.time()
    } catch (error) {
      throw failureOf(error, this.name)
    }
  }

  async leave(): Promise<void> {
    if (!this.#parts) return
    const { session, requests } = this.#parts
    this.#parts = undefined
    // Releases get their replies before the session ends. The server deletes the rest.
    await this.#ready(() => requests.leave())
    await session.close()
  }

  #partsOf(member: SessionInfo, listener: Listener): Parts {
    const place = this.#place
    const paths = new NodePaths(place.root)
    const time = new ServerTime()
    const box = { place, paths, member, listener, clock: this.#clock, time }
    const session: BoxSession = new BoxSession(box, {
      onBegin: client => stores.onSession(client),
      onNodesDeleted: client => void requests.verify(client).catch(() => undefined),
      onEnd: cause => requests.onSessionEnd(cause),
    })
    const values = new Values(box)
    const requests = new LockRequests(box, session, values)
    const stores: Stores = new Stores(box, session, values, requests)
    return { session, requests, stores, admin: new Admin(session, paths) }
  }

  #execute({ requests, stores, admin }: Parts, operation: Exclude<Operation, Alive>): Awaitable<unknown> {
    switch (operation.type) {
      case 'enqueue':
        return requests.enqueue(operation)
      case 'checkIn':
        return requests.checkIn(operation)
      case 'cancel':
        return requests.cancel(operation)
      case 'renew':
        return requests.renew(operation)
      case 'release':
        return requests.release(operation)
      case 'extendOrYield':
        return requests.extendOrYield(operation)
      case 'downgrade':
        return requests.downgrade(operation)
      case 'sweepExpired':
        // The servers keep the order, and no session reserves anything for another.
        return undefined
      case 'inspect':
        return admin.inspect(operation)
      case 'forceRelease':
        return admin.forceRelease(operation)
      case 'revoke':
        return admin.revoke(operation.session)
      case 'read':
        return stores.read(operation)
      case 'list':
        return stores.list(operation)
      case 'commit':
        return stores.commit(operation)
      case 'watch':
        return stores.watch(operation.key)
      case 'unwatch':
        stores.unwatch(operation.key)
        return undefined
    }
  }
}

/** Returns the keys of an operation whose size the caller has chosen, for errors; undefined for other operations. */
function keysOf(operation: Operation): string | undefined {
  switch (operation.type) {
    case 'enqueue':
      return distinct(operation.request.claims)
    case 'extendOrYield':
      return distinct(operation.next.claims)
    case 'commit':
      return distinct([...operation.writes, ...operation.expect])
    default:
      return undefined
  }
}

function distinct(keyed: readonly { readonly key: string }[]): string {
  return [...new Set(keyed.map(({ key }) => key))].join(', ')
}
