import { SessionExpiredError, type ZooKeeper } from '../index.js'
import {
  CLAIM_WINDOW,
  coverTtl,
  entryTtl,
  type Alive,
  type Awaitable,
  type Cancel,
  type CheckIn,
  type Downgrade,
  type Enqueue,
  type ExtendOrYield,
  type Granted,
  type Release,
  type Renew,
  type RequestStatus,
  type SignOutcome,
  type WaitTerms,
} from 'signalbox/engine'
import type { BoxContext } from './box-context.js'
import type { BoxSession } from './box-session.js'
import { GONE, LockNodes, type EntryProblem } from './lock-nodes.js'
import { OwnRequest } from './own-request.js'
import { QueueWatch } from './queue-watch.js'
import type { Values } from './values.js'

type TermsAndRead = WaitTerms & Pick<Enqueue, 'read'>

/** The requests of a box. A request is granted when no contender is ahead of its nodes in any queue. */
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
      onFree: own => this.#onFree(own),
      onDeleted: own => this.#onDeleted(own),
      onContended: own => {
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

  /**
   * Costs no packet: the heartbeat of the client's session is the sign for the servers. Without signs of the box, its
   * requests end.
   */
  alive({ requests }: Alive): SignOutcome {
    const due: string[] = []
    for (const { id } of requests) {
      const own = this.#requests.get(id)
      if (own?.phase === 'waiting') this.#setExpiry(own, coverTtl(own.lease))
      else due.push(id)
    }
    return { due, next: Infinity }
  }

  async cancel({ request }: Cancel): Promise<undefined> {
    const own = this.#requests.get(request.id)
    if (own) await this.#delete(own)
    return undefined
  }

  /** Also finds out whether another client has deleted a node without notifying this box. */
  async renew(operation: Renew): Promise<boolean> {
    const own = this.held(operation)
    if (!own) return false
    const { entered } = own
    await entered
    const stats = await Promise.all(own.paths.map(path => own.client!.exists(path)))
    if (this.held(operation) !== own) return false
    // A downgrade that has begun in the meantime replaces nodes, and notices itself if one is missing.
    if (own.entered === entered && stats.includes(undefined)) {
      this.#onDeleted(own)
      return false
    }
    this.#setExpiry(own, operation.lease)
    return true
  }

  async release(operation: Release): Promise<boolean> {
    const own = this.held(operation)
    return own ? this.#delete(own) : false
  }

  /**
   * Deletes the nodes and creates new ones in one multi, even if the grant is kept. A number of its own for a kept
   * grant would be greater than that of a request that came in the meantime and is granted later.
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
      // The nodes of the old grant may still exist.
      this.#tryDelete(held)
      throw error
    }
  }

  /** Renames the nodes. Later operations, such as a release, wait for that. */
  async downgrade(operation: Downgrade): Promise<boolean> {
    const own = this.held(operation)
    if (!own) return false
    const replaced = own.entered.then(() => this.#nodes.replaceByShared(own))
    own.entered = replaced.catch(() => undefined)
    const isReplaced = await replaced
    if (!isReplaced) this.#onDeleted(own)
    return isReplaced
  }

  /** Returns the request of a grant that this session has. */
  held({ request, number }: Granted): OwnRequest | undefined {
    const own = this.#requests.get(request.id)
    return own?.phase === 'held' && own.number === number ? own : undefined
  }

  /** Removes a request whose nodes are gone or about to be deleted. */
  forget(own: OwnRequest): void {
    own.phase = 'gone'
    own.timer?.cancel()
    own.uncontendedTimer?.cancel()
    this.#watch.unwatch(own)
    this.#nodes.forget(own)
    if (this.#requests.get(own.request.id) === own) this.#requests.delete(own.request.id)
    if (this.#requests.size === 0) this.#session.now?.keepCertain(false)
  }

  /** Handles the deletion of nodes of a request by another client. */
  #onDeleted(own: OwnRequest): void {
    this.#tryDelete(own)
    this.#box.listener.lost(own.request.id)
  }

  /** Finds the requests of which another client has deleted nodes. */
  async verify(client: ZooKeeper): Promise<void> {
    const all = [...this.#requests.values()].filter(
      own => own.client === client && own.phase !== 'entering' && own.phase !== 'gone',
    )
    const before = all.map(({ entered }) => entered)
    await Promise.all(before)
    const there = new Set(await client.getEphemerals(this.#box.paths.locks))
    for (const [index, own] of all.entries()) {
      if (own.phase === 'gone' || own.entered !== before[index]) continue
      if (!own.paths.every(path => there.has(path))) this.#onDeleted(own)
    }
  }

  /** Handles the end of the session. Everything that it had is gone. */
  onSessionEnd(cause: Error): void {
    for (const own of [...this.#requests.values()]) {
      // The creation of its nodes fails by itself.
      if (own.phase === 'entering') continue
      this.forget(own)
      this.#box.listener.lost(own.request.id, cause)
    }
  }

  /** Resolves when everything that was requested so far has been sent. */
  async leave(): Promise<void> {
    for (const { timer, uncontendedTimer } of this.#requests.values()) {
      timer?.cancel()
      uncontendedTimer?.cancel()
    }
    this.#requests.clear()
    await this.#nodes.sent()
  }

  /** Creates the nodes of a request, instead of those of another one if given, and returns its status. */
  async #enter(
    own: OwnRequest,
    terms: TermsAndRead,
    instead: OwnRequest | undefined,
  ): Promise<RequestStatus> {
    this.#requests.set(own.request.id, own)
    const entered = this.#create(own, instead)
    own.entered = entered.catch(() => undefined)
    let problem: EntryProblem | undefined
    try {
      problem = await entered
    } catch (error) {
      // Its nodes may exist even if their queues could not be read.
      this.#tryDelete(own)
      throw error
    }
    // It was cancelled, or its session has ended; both take care of its nodes.
    if (this.#requests.get(own.request.id) !== own) return GONE
    if (problem) {
      await this.#delete(own)
      return problem
    }
    if (own.isFree) own.phase = 'free'
    else if (terms.wait === 0) {
      await this.#delete(own)
      return { state: 'busy' }
    } else {
      own.phase = 'waiting'
      this.#watch.watchBefore(own)
    }
    return this.#status(own, terms)
  }

  /**
   * Resolves when the nodes exist and their positions are known. If the session ends in the meantime, the nodes end
   * with it, and are created again in the next one.
   */
  async #create(own: OwnRequest, instead: OwnRequest | undefined): Promise<EntryProblem | undefined> {
    const { deadline } = this.#session
    for (;;) {
      own.client = this.#session.now ?? (await this.#session.get(deadline))
      own.client.keepCertain(true)
      try {
        return await this.#nodes.create(own, instead)
      } catch (error) {
        if (!(error instanceof SessionExpiredError)) throw error
        // The grant that it replaces has ended, too. A cancelled request is not queued again.
        if (instead || own.phase === 'gone') return GONE
      }
    }
  }

  #onFree(own: OwnRequest): void {
    own.phase = 'free'
    this.#watch.unwatch(own)
    this.#setExpiry(own, CLAIM_WINDOW)
    this.#box.listener.wake(own.request.id)
  }

  /** Returns the status of a queued request. This counts as a sign of the request. */
  #status(own: OwnRequest, terms: TermsAndRead): Awaitable<RequestStatus> {
    const { request, nodes, number, phase } = own
    const { id } = request
    if (this.#requests.get(id) !== own || phase === 'gone' || phase === 'entering') return GONE
    own.lease = terms.lease
    if (phase === 'waiting') {
      this.#setExpiry(own, entryTtl(terms))
      return { state: 'queued', id, place: nodes[0]!.ahead, checkInAfter: Infinity, sessionsAhead: [] }
    }
    if (own.client!.certainFor <= 0) return this.#statusWhenCertain(own, terms)
    own.phase = 'held'
    this.#setExpiry(own, terms.lease)
    if (!terms.read) return { state: 'held', id, number }
    // This server's values are at least as new as its queue, so they need no `sync`.
    return this.#values.read(own.client!, terms.read, false).then(
      read => ({ state: 'held', id, number, read }),
      (error: unknown) => {
        // No caller knows of the grant yet.
        this.#tryDelete(own)
        if (error instanceof SessionExpiredError) return GONE
        throw error
      },
    )
  }

  /** Returns the status once it is certain that the session, and so the request, still exists. */
  async #statusWhenCertain(own: OwnRequest, terms: TermsAndRead): Promise<RequestStatus> {
    try {
      await own.client!.certain()
    } catch {
      // The request has ended with the session.
      this.#tryDelete(own)
      return GONE
    }
    return this.#status(own, terms)
  }

  /** Ends a request if no sign or check-in follows within this many milliseconds. */
  #setExpiry(own: OwnRequest, ttl: number): void {
    const { clock } = this.#box
    own.timer?.cancel()
    // After a freeze, timers that are overdue run in any order: the sign of the box must come before this one.
    const expire = (): void => {
      own.timer = clock.after(0, () => this.#tryDelete(own), false)
    }
    own.timer = clock.after(ttl, expire, false)
  }

  /**
   * Deletes the nodes of a request. Returns whether all existed.
   * @throws RefusedError if the server does not allow it
   */
  async #delete(own: OwnRequest): Promise<boolean> {
    this.forget(own)
    await own.entered
    return this.#nodes.delete(own)
  }

  /** Removes a request as far as the server allows it; the rest ends with the session. */
  #tryDelete(own: OwnRequest): void {
    this.#delete(own).catch(() => undefined)
  }
}
