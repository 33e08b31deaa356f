import { SessionExpiredError, type ZooKeeper } from 'signalbox-zookeeper'
import {
  CLAIM_WINDOW,
  entryTtl,
  heartbeatWithin,
  type Awaitable,
  type Cancel,
  type Downgrade,
  type Enqueue,
  type ExtendOrYield,
  type Granted,
  type WaitTerms,
  type CheckIn,
  type Release,
  type Renew,
  type RequestStatus,
} from '../../engine/contract.js'
import type { BoxContext } from './box-context.js'
import type { BoxSession } from './box-session.js'
import { GONE, LockNodes, type EntryProblem } from './lock-nodes.js'
import { OwnRequest } from './own-request.js'
import { QueueWatch } from './queue-watch.js'
import type { Values } from './values.js'

/** A waiter that heard nothing looks again after so long at the latest. The look costs no packet: milliseconds. */
const LOOK_AGAIN = 2000

type PatienceAndRead = WaitTerms & Pick<Enqueue, 'read'>

/** The requests of a box. A request is granted when no contender stands before its nodes in any queue. */
export class LockRequests {
  readonly #box: BoxContext
  readonly #session: BoxSession
  readonly #nodes: LockNodes
  readonly #values: Values
  readonly #watch: QueueWatch
  readonly #requests = new Map<string, OwnRequest>()
  #count = 0

  constructor(box: BoxContext, session: BoxSession, values: Values) {
    this.#box = box
    this.#session = session
    this.#nodes = new LockNodes(box)
    this.#values = values
    this.#watch = new QueueWatch(box.clock, this.#nodes, {
      free: own => this.#becameFree(own),
      taken: own => this.taken(own),
      contended: own => {
        if (own.phase === 'held') box.listener.contended(own.request.id)
      },
    })
  }

  async enqueue(operation: Enqueue): Promise<RequestStatus> {
    const { request, lease } = operation
    const known = this.#requests.get(request.id)
    if (!known) return this.#enter(new OwnRequest(request, ++this.#count, lease), operation, undefined)
    await known.entered
    return this.#status(known, operation)
  }

  async checkIn(operation: CheckIn): Promise<RequestStatus> {
    const own = this.#requests.get(operation.request.id)
    if (!own) return GONE
    if (own.phase === 'entering') await own.entered
    return this.#status(own, operation)
  }

  async cancel({ request }: Cancel): Promise<undefined> {
    const own = this.#requests.get(request.id)
    if (own) await this.#remove(own)
    return undefined
  }

  /** A node that another client has deleted, without telling this box, is found missing here. */
  async renew(operation: Renew): Promise<boolean> {
    const own = this.held(operation)
    if (!own) return false
    const { entered } = own
    await entered
    const stats = await Promise.all(own.paths.map(path => own.client!.exists(path)))
    if (this.held(operation) !== own) return false
    // A downgrade that has begun meanwhile replaces nodes, and finds by itself that one is missing.
    if (own.entered === entered && stats.includes(undefined)) {
      this.taken(own)
      return false
    }
    this.#arm(own, operation.lease)
    return true
  }

  async release(operation: Release): Promise<boolean> {
    const own = this.held(operation)
    return own ? this.#remove(own) : false
  }

  /**
   * One multi deletes the nodes and creates new ones, also where the grant is kept: a number of its own for a kept
   * grant would be greater than that of a request that came meanwhile and is granted after it.
   */
  async extendOrYield(operation: ExtendOrYield): Promise<RequestStatus> {
    const held = this.held(operation)
    if (!held) return GONE
    this.forget(held)
    const own = new OwnRequest(operation.next, ++this.#count, operation.lease)
    try {
      const status = await this.#enter(own, operation, held)
      if (status.state !== 'held' || !own.isUncontended) return status
      this.#watch.watchBehind(own)
      return { ...status, isUncontended: true }
    } catch (error) {
      // The nodes of the old grant may still be there.
      this.#discard(held)
      throw error
    }
  }

  /** What is asked for meanwhile, such as a release, waits for it, because the nodes get other names. */
  async downgrade(operation: Downgrade): Promise<boolean> {
    const own = this.held(operation)
    if (!own) return false
    const replaced = own.entered.then(() => this.#nodes.replaceByShared(own))
    own.entered = replaced.catch(() => undefined)
    const isReplaced = await replaced
    if (!isReplaced) this.taken(own)
    return isReplaced
  }

  /** The request of a grant that this session has. */
  held({ request, number }: Granted): OwnRequest | undefined {
    const own = this.#requests.get(request.id)
    return own?.phase === 'held' && own.number === number ? own : undefined
  }

  /** Ends a request, whose nodes are gone or about to be deleted. */
  forget(own: OwnRequest): void {
    own.phase = 'gone'
    own.timer?.cancel()
    own.alone?.cancel()
    this.#watch.unwatch(own)
    if (this.#requests.get(own.request.id) === own) this.#requests.delete(own.request.id)
    if (this.#requests.size === 0) this.#session.now?.keepCertain(false)
  }

  /** Another client has deleted nodes of a request. */
  taken(own: OwnRequest): void {
    this.#discard(own)
    this.#box.listener.lost(own.request.id)
  }

  /** Finds out what another client took from this session. */
  async verify(client: ZooKeeper): Promise<void> {
    const all = [...this.#requests.values()].filter(
      own => own.client === client && own.phase !== 'entering' && own.phase !== 'gone',
    )
    const before = all.map(({ entered }) => entered)
    await Promise.all(before)
    const there = new Set(await client.getEphemerals(this.#box.paths.locks))
    for (const [index, own] of all.entries()) {
      if (own.phase === 'gone' || own.entered !== before[index]) continue
      if (!own.paths.every(path => there.has(path))) this.taken(own)
    }
  }

  /** The session is over, and everything that it had is gone. */
  sessionOver(cause: Error): void {
    for (const own of [...this.#requests.values()]) {
      // The creation of nodes fails by itself.
      if (own.phase === 'entering') continue
      this.forget(own)
      this.#box.listener.lost(own.request.id, cause)
    }
  }

  /** Settles when what was asked for by now has been sent. */
  async leave(): Promise<void> {
    for (const { timer, alone } of this.#requests.values()) {
      timer?.cancel()
      alone?.cancel()
    }
    this.#requests.clear()
    await this.#nodes.sent()
  }

  /** Creates the nodes of a request, in the place of those of another one if that is named, and gives its status. */
  async #enter(
    own: OwnRequest,
    terms: PatienceAndRead,
    instead: OwnRequest | undefined,
  ): Promise<RequestStatus> {
    this.#requests.set(own.request.id, own)
    const entered = this.#create(own, instead)
    own.entered = entered.catch(() => undefined)
    let problem: EntryProblem | undefined
    try {
      problem = await entered
    } catch (error) {
      // Its nodes may be there although their queues could not be read.
      this.#discard(own)
      throw error
    }
    // It was cancelled, or its session has ended, and that deals with its nodes.
    if (this.#requests.get(own.request.id) !== own) return GONE
    if (problem) {
      await this.#remove(own)
      return problem
    }
    if (own.isFree) own.phase = 'free'
    else if (terms.wait === 0) {
      await this.#remove(own)
      return { state: 'busy' }
    } else {
      own.phase = 'waiting'
      this.#watch.watchBefore(own)
    }
    return this.#status(own, terms)
  }

  /**
   * Settles when the nodes are there and it is known how they stand. When the session ends meanwhile, none of them
   * outlives it, and they are created in the next one.
   */
  async #create(own: OwnRequest, instead: OwnRequest | undefined): Promise<EntryProblem | undefined> {
    for (;;) {
      own.client = this.#session.now ?? (await this.#session.get())
      own.client.keepCertain(true)
      try {
        return await this.#nodes.create(own, instead)
      } catch (error) {
        if (!(error instanceof SessionExpiredError)) throw error
        // The grant that it was to replace has ended, too. A cancelled request is not entered again.
        if (instead || own.phase === 'gone') return GONE
      }
    }
  }

  #becameFree(own: OwnRequest): void {
    own.phase = 'free'
    this.#watch.unwatch(own)
    this.#arm(own, CLAIM_WINDOW)
    this.#box.listener.wake(own.request.id)
  }

  /** Answers for a request that has been entered, and counts it as heard of. */
  #status(own: OwnRequest, terms: PatienceAndRead): Awaitable<RequestStatus> {
    const { request, nodes, number, phase } = own
    const { id } = request
    if (this.#requests.get(id) !== own || phase === 'gone' || phase === 'entering') return GONE
    own.lease = terms.lease
    if (phase === 'waiting') {
      this.#arm(own, entryTtl(terms))
      const checkInAfter = Math.min(heartbeatWithin(terms), LOOK_AGAIN)
      return { state: 'queued', id, place: nodes[0]!.ahead, checkInAfter, sessionsAhead: [] }
    }
    if (own.client!.certainFor <= 0) return this.#statusWhenCertain(own, terms)
    own.phase = 'held'
    this.#arm(own, terms.lease)
    if (!terms.read) return { state: 'held', id, number }
    // What this server has seen of the queue it has seen of the values, so they need no `sync`.
    return this.#values.read(own.client!, terms.read, false).then(
      read => ({ state: 'held', id, number, read }),
      (error: unknown) => {
        // No caller has heard of the grant.
        this.#discard(own)
        if (error instanceof SessionExpiredError) return GONE
        throw error
      },
    )
  }

  /** Answers when it is known that the session, and with it the request, is still there. */
  async #statusWhenCertain(own: OwnRequest, terms: PatienceAndRead): Promise<RequestStatus> {
    try {
      await own.client!.certain()
    } catch {
      // What ended the session has ended the request, too.
      this.#discard(own)
      return GONE
    }
    return this.#status(own, terms)
  }

  /** Ends a request unless it is heard of within so many milliseconds. */
  #arm(own: OwnRequest, life: number): void {
    own.timer?.cancel()
    own.timer = this.#box.clock.after(life, () => this.#discard(own), false)
  }

  /**
   * Deletes the nodes of a request. Gives whether all were there.
   * @throws RefusedError when the server does not allow it
   */
  async #remove(own: OwnRequest): Promise<boolean> {
    this.forget(own)
    await own.entered
    return this.#nodes.delete(own)
  }

  /** Removes a request as far as the server allows it; the rest goes with the session. */
  #discard(own: OwnRequest): void {
    this.#remove(own).catch(() => undefined)
  }
}
