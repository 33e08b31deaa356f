import { UnavailableError } from 'signalbox'
import {
  HEARTBEAT_INTERVAL,
  type Alive,
  type CheckIn,
  type Clock,
  type Commit,
  type CommitOutcome,
  type Enqueue,
  type Granted,
  type LockRequest,
  type Operation,
  type OutcomeOf,
  type Renew,
  type RequestStatus,
  type SignOutcome,
} from 'signalbox/engine'
import { answered, NoAnswerError } from './call.js'
import { Commits } from './commits.js'
import { DeadSets } from './dead-sets.js'
import { Decisions, type Notify } from './decisions.js'
import { Distance } from './distance.js'
import { failureOf, roomFailureOf } from './failures.js'
import type { HazelcastPlace } from './hazelcast-url.js'
import type { EntryParts } from './key-changes.js'
import type { SignStore } from './entry-store.js'
import { coveredGrants, GrantSigns } from './grant-signs.js'
import { KeyEntries } from './key-entries.js'
import { microseconds, type KeyRequest } from './key-entry.js'
import type { Message } from './hints.js'
import { Floor } from './floor.js'
import { FreeEntries } from './free-entries.js'
import { Leaving } from './leaving.js'
import { homeOf } from './open-entry.js'
import { OwnGrants, type RenewedInEntry } from './own-grants.js'
import { Reads } from './reads.js'
import { Reports } from './reports.js'
import type { Scan } from './scan.js'
import type { Sessions } from './sessions.js'
import { Sets } from './sets.js'
import { Signs } from './signs.js'
import { Sweeper } from './sweeper.js'
import { ROOM, WaitingRoom } from './waiting-room.js'

/** Operations that change a request that is in its entries. */
type Change = Exclude<Extract<Operation, { readonly request: LockRequest }>, Enqueue | CheckIn | Renew>

/** Maximum number of sessions whose signs are looked up for a key, unless one has just missed its turn. */
const LOOKED_UP = 8

/** The store of entries, and their locks. */
export type EntryPlace = Pick<EntryParts, 'store' | 'locks'>

/** Locks and unlocks the keys of requests on the members, while changes of their entries are under way. */
export interface MemberLocksOfRequests {
  /** Called before a request joins the queues of several keys. */
  standing(operation: Enqueue | CheckIn): void
  /** Called when a change is sent that grants a request, unless another box is faster. */
  granting(request: LockRequest, lease: number): void
  /** Called when a request is not granted at once, perhaps long before it has its place in the queue. */
  blocked(id: string): void
  /** Called when a change is sent that removes a request, unless another box is faster. */
  releasing(id: string): void
}

/** The parts of the engine that operations on keys use. */
export interface OperationParts {
  readonly place: HazelcastPlace
  /** The name under which this box changes entries: its session. */
  readonly by: () => string
  readonly clock: Clock
  /** The entries of keys. */
  readonly keys: EntryPlace
  /** The entry of the waiting room. */
  readonly room: EntryPlace
  /** The signs of life of boxes. */
  readonly signs: SignStore
  readonly scan: Pick<Scan, 'inUse' | 'list' | 'unused' | 'usedBy'>
  readonly repeat: <T>(work: () => Promise<T>, until?: number) => Promise<T>
  readonly sessions: Pick<
    Sessions,
    | 'diedBefore'
    | 'extendFor'
    | 'outlives'
    | 'forget'
    | 'isDead'
    | 'isSweeper'
    | 'keep'
    | 'leaveFree'
    | 'left'
    | 'lookUp'
    | 'lookUpNow'
    | 'of'
    | 'swept'
  >
  /** Receives the hints of saved decisions. */
  readonly notify: Notify
  /** Called with a holder of another session for which a request now waits. */
  readonly waitsFor: (session: string, message: Message) => void
  readonly members: MemberLocksOfRequests
  /** Called when it is unknown whether a change was applied. */
  readonly unclear: () => void
  /** Called before an enqueue is decided. Returns whether it was withdrawn. */
  readonly isWithdrawn: (request: LockRequest) => boolean
}

/** Executes operations on the entries of their keys. Does not lock keys on the members itself. */
export class KeyOperations {
  readonly #parts: OperationParts
  readonly #entries: KeyEntries
  readonly #decisions: Decisions
  readonly #room: WaitingRoom
  readonly #dead: DeadSets
  readonly #reads: Reads
  readonly #commits: Commits
  readonly #sets: Sets
  readonly #reports: Reports
  readonly #leaving = new Leaving()
  readonly #signs: Signs
  readonly #grants: OwnGrants
  readonly #free: FreeEntries
  readonly #sweeper: Sweeper

  constructor(parts: OperationParts) {
    this.#parts = parts
    const { place, by, clock, keys, room, scan, sessions } = parts
    let count = 0
    let version = 0
    const floor = new Floor(room.store, clock)
    this.#signs = new Signs(parts.signs, clock)
    this.#grants = new OwnGrants({
      store: room.store,
      clock,
      session: by,
      keep: () => sessions.keep(),
      repeat: (work, until) => parts.repeat(work, until),
    })
    const diedBefore = (session: string): number => sessions.diedBefore(session)
    const grants = new GrantSigns(room.store, clock, by, this.#grants, diedBefore)
    const shared = {
      clock,
      floor,
      repeat: <T>(work: () => Promise<T>, until?: number) => parts.repeat(work, until),
      extendFor: (lease: number) => sessions.extendFor(lease),
      outlives: (lease: number) => sessions.outlives(lease),
      nextMark: () => ({ by: by(), count: ++count }),
      nextVersion: (above: number) => (version = Math.max(version, above, microseconds()) + 1),
      failure: (error: unknown) => failureOf(error, place, UnavailableError),
      unclear: () => parts.unclear(),
      diedBefore,
      grants,
      distance: new Distance(),
      signs: {
        isCovered: (request: KeyRequest) => this.#isCovered(request),
        seen: (session: string) => this.#signs.seen(session),
      },
      isAwaited: (id: string, key: string) => this.#sets.isAwaited(id, key),
    }
    this.#free = new FreeEntries(
      keys.store,
      floor,
      clock,
      key => this.#entries.changed(key, undefined),
      () => void sessions.leaveFree(),
    )
    this.#entries = new KeyEntries({
      ...shared,
      ...keys,
      seen: (key, found) => this.#free.see(key, found),
      look: requests => grants.look(coveredGrants(requests)),
    })
    this.#decisions = new Decisions(this.#entries, clock, parts.notify)
    const ofRoom: Pick<EntryParts, 'seen' | 'signs' | 'look' | 'failure'> = {
      seen: () => undefined,
      signs: {
        ...shared.signs,
        // The last sign of this box still names a set that no longer waits, but may not have left the room.
        isCovered: request =>
          this.#isCovered(request) && (request.session !== by() || this.#sets.isWaiting(request.id)),
      },
      look: (_, overdue) => this.#lookUpSignsOf(overdue()),
      failure: error => roomFailureOf(error, place),
    }
    this.#room = new WaitingRoom({ ...shared, ...room, ...ofRoom }, effects =>
      parts.notify(
        effects.map(effect => ({ ...effect, key: ROOM })),
        undefined,
      ),
    )
    this.#dead = new DeadSets(this.#decisions, clock)
    this.#reads = new Reads(this.#decisions, this.#dead)
    this.#commits = new Commits(this.#decisions, this.#reads, this.#dead, clock)
    this.#sets = new Sets({
      decisions: this.#decisions,
      room: this.#room,
      clock,
      leaving: this.#leaving,
      areFree: keys => this.areLikelyFree(keys),
      waits: (key, request) => this.#tellHolders(key, request),
      blocked: keys => this.#lookBehind(keys),
      notGranted: id => parts.members.blocked(id),
      freed: keys => this.#freed(keys),
      lookUp: all => sessions.lookUp(all).catch(() => undefined),
      read: (read, set) => this.#reads.read(read, set),
      apply: (home, decided) => this.#dead.apply(home, decided),
      isWithdrawn: request => parts.isWithdrawn(request),
    })
    this.#reports = new Reports(this.#decisions, this.#room, this.#dead, scan, sessions, key =>
      this.#lookUpSigns([key]).catch(() => false),
    )
    this.#sweeper = new Sweeper(this.#decisions, this.#reports, scan, sessions, grants, clock)
  }

  /** Whether the keys are probably free. */
  areLikelyFree(keys: readonly string[]): boolean {
    return this.areFree(keys) && (keys.length === 1 || !this.#sets.areBusy(keys))
  }

  /** Whether no request of any box claims one of these keys, as far as it is known, except requests that leave them. */
  areFree(keys: readonly string[]): boolean {
    return keys.every(key => this.#requestsOf(key).every(({ id }) => this.#leaving.has(id)))
  }

  /** Settles when a request has left all of its keys; undefined if it is not about to. */
  left(id: string): Promise<unknown> | undefined {
    return this.#leaving.left(id)
  }

  /** Call when another box has changed the entry of a key. @param text the new entry, if it is known. */
  changed(key: string, text: string | undefined): void {
    if (key === ROOM) this.#room.changed()
    else this.#entries.changed(key, text)
  }

  /** Whether a grant excludes all others, and no other request claims its only key, as far as it is known. */
  isUncontended({ id, claims }: LockRequest): boolean {
    const [claim] = claims
    const requests = this.#entries.known(claim!.key)?.entry.locks.requests
    return (
      claims.length === 1 && claim!.mode === 'exclusive' && requests?.length === 1 && requests[0]!.id === id
    )
  }

  /** Stops all work in the background. */
  end(): void {
    this.#dead.end()
    this.#decisions.end()
    this.#sweeper.end()
    this.#free.end()
  }

  /** Leaves entries that this box would have deleted later to other boxes. Never throws. */
  async leave(): Promise<void> {
    await Promise.all([this.#dead.settled(), this.#grants.leave()])
    if (this.#free.isLeft) await this.#parts.sessions.leaveFree()
  }

  /**
   * Removes the entries and requests of dead boxes, as the regular sweep does. Rejects if the sweep may be incomplete.
   */
  sweep(): Promise<void> {
    return this.#sweeper.sweep()
  }

  /** Forgets everything that is known of entries and signs, because other boxes may have changed them. */
  forgetAll(): void {
    this.#entries.forgetAll()
    this.#grants.drop()
    this.#room.changed()
  }

  /** Handles a hint that a grant was lost: its next renewal asks its entry. */
  doubted(id: string): void {
    this.#grants.doubt(id)
  }

  /** Handles a hint that a request may be granted. Returns whether it should check in. */
  async woken(request: LockRequest): Promise<boolean> {
    return !this.#isOfSets(request) || this.#sets.woken(request.id)
  }

  /** Returns the IDs of those requests that are still in their entries. Sets that wait find that out themselves. */
  async present(requests: readonly LockRequest[]): Promise<ReadonlySet<string>> {
    const found = await Promise.all(
      requests.map(async ({ id, claims }) =>
        this.#sets.isWaiting(id)
          ? true
          : this.#decisions.at(homeOf(claims), state => state.request(id) !== undefined),
      ),
    )
    return new Set(requests.filter((_, at) => found[at]).map(({ id }) => id))
  }

  execute<O extends Operation>(operation: O): Promise<OutcomeOf<O>>
  async execute(operation: Operation): Promise<OutcomeOf<Operation>> {
    switch (operation.type) {
      case 'enqueue':
        return this.#stand(operation)
      case 'checkIn':
        return this.#grants.changes(operation.request.id, this.#stand(operation))
      case 'commit':
        return this.#commit(operation)
      case 'renew':
        return this.#renew(operation)
      case 'read':
        return this.#reads.read(operation)
      case 'list':
        return this.#unlessFailed(() => this.#parts.scan.list(operation))
      case 'inspect':
        return this.#unlessFailed(() => this.#reports.inspect(operation))
      case 'revoke':
        return this.#unlessFailed(() => this.#reports.revoke(operation.session))
      case 'sweepExpired':
        await Promise.all(operation.keys.map(key => this.#sweep(key)))
        return undefined
      case 'forceRelease':
        return this.#forceRelease(operation.key, operation.number)
      case 'alive':
        return this.#alive(operation)
      case 'watch':
      case 'unwatch':
        return undefined
      case 'release':
      case 'cancel':
        return this.#leaving.until(operation.request, this.#change(operation))
      default:
        return this.#change(operation)
    }
  }

  async #renew(operation: Renew): Promise<boolean> {
    const { request, lease } = operation
    try {
      return await this.#grants.renew(operation, sign =>
        this.#decisions.at(
          homeOf(request.claims),
          (state, machine, now): RenewedInEntry => {
            const before = state.request(request.id)?.lease
            if (!machine.decide(operation, now)) return 'lost'
            // A grant that is requested with the rest of its lease must not be kept for longer.
            if (sign === undefined || before !== lease) return 'renewed'
            state.cover(request.id, sign)
            return 'covered'
          },
          { lease },
        ),
      )
    } catch (error) {
      throw failureOf(error, this.#parts.place, UnavailableError)
    }
  }

  /** Whether a request is for several keys, or follows one that is. */
  #isOfSets({ id, claims }: LockRequest): boolean {
    return claims.length > 1 || this.#sets.has(id)
  }

  #change(operation: Change): Promise<OutcomeOf<Change>> {
    return this.#grants.changes(operation.request.id, this.#changed(operation))
  }

  async #changed(operation: Change): Promise<OutcomeOf<Change>> {
    const { type, request } = operation
    const tried = (): void => {
      if (type === 'release' || type === 'cancel') this.#parts.members.releasing(request.id)
    }
    if (this.#isOfSets(request)) {
      tried()
      return this.#ofSet(operation)
    }
    const lease = 'lease' in operation ? { lease: operation.lease } : {}
    const { key } = request.claims[0]!
    return this.#decisions.at(key, (_, machine, now) => machine.decide(operation, now), { ...lease, tried })
  }

  #ofSet(operation: Change): Promise<OutcomeOf<Change>> {
    switch (operation.type) {
      case 'cancel':
        return this.#sets.cancel(operation.request)
      case 'release':
        return this.#sets.release(operation)
      case 'downgrade':
        return this.#sets.downgrade(operation)
      case 'extendOrYield':
        return this.#sets.extendOrYield(operation)
    }
  }

  async #stand(operation: Enqueue | CheckIn): Promise<RequestStatus> {
    const { request, lease, read } = operation
    this.#sweeper.used()
    const { key } = request.claims[0]!
    if (this.#isOfSets(request)) {
      this.#parts.members.standing(operation)
      return operation.type === 'enqueue' ? this.#sets.enqueue(operation) : this.#sets.checkIn(operation)
    }
    if (operation.type === 'enqueue') {
      const entered = this.#sets.entered(request.claims)
      if (entered) await entered
      if (this.#sets.areWaitedFor([key])) return this.#sets.enqueue(operation)
      const decided = this.areFree([key]) ? this.#leaving.decided([key]) : undefined
      if (decided) await decided
    }
    const isOfKey = [...(read?.keys ?? []), ...(read?.ids ?? []).map(each => each.key)].every(
      other => other === key,
    )
    const decide = (): Promise<RequestStatus> =>
      this.#decisions.at(
        key,
        (_, machine, now): RequestStatus => {
          if (operation.type === 'enqueue' && this.#parts.isWithdrawn(request)) return { state: 'busy' }
          return machine.decide({ ...operation, read: isOfKey ? read : undefined }, now)
        },
        {
          lease,
          tried: ({ state }) => {
            if (state === 'held') this.#parts.members.granting(request, lease)
            else this.#parts.members.blocked(request.id)
          },
          ...(operation.type === 'enqueue' && { canWait: ({ state }) => state === 'queued' }),
        },
      )
    let status = await decide()
    if (status.state === 'busy' && (await this.#freed([key]))) status = await decide()
    if (status.state === 'queued') this.#lookBehind([key])
    if (status.state === 'queued' && operation.type === 'enqueue') this.#tellHolders(key, request)
    if (status.state !== 'held' || !read || isOfKey) return status
    return { ...status, read: await this.#reads.read(read) }
  }

  async #alive({ type, session, requests }: Alive): Promise<SignOutcome> {
    const ids = requests.map(({ id }) => id)
    const sending = this.#unlessFailed(async () => {
      // A waiting request renews no lease, but its session must not look dead.
      await Promise.all([this.#signs.send(session, ids), this.#parts.sessions.keep()])
    })
    const byKey = new Map<string, LockRequest[]>()
    for (const request of requests) {
      // Sets check in instead.
      if (this.#isOfSets(request)) continue
      const { key } = request.claims[0]!
      byKey.set(key, [...(byKey.get(key) ?? []), request])
    }
    const [outcomes] = await Promise.all([
      Promise.all(
        [...byKey].map(async ([key, ofKey]): Promise<SignOutcome> => {
          const deciding = this.#lookUpSigns([key])
            .catch(() => undefined)
            .then(() =>
              this.#decisions.at(key, (_, machine, now) =>
                machine.decide({ type, session, requests: ofKey }, now),
              ),
            )
          try {
            // The next sign must not wait for a key that is busy.
            return await answered(deciding, this.#parts.clock, HEARTBEAT_INTERVAL)
          } catch (error) {
            // Only the requests for a key that can't be read fail, when they check in.
            const due = error instanceof NoAnswerError ? [] : ofKey.map(({ id }) => id)
            return { due, next: Infinity }
          }
        }),
      ),
      sending,
    ])
    this.#lookBehind([...byKey.keys()])
    return {
      due: outcomes.flatMap(({ due }) => due),
      next: Math.min(Infinity, ...outcomes.map(({ next }) => next)),
    }
  }

  #commit(commit: Commit): Promise<CommitOutcome> {
    const { guard, expect, writes, record } = commit
    if (guard && this.#isOfSets(guard.request)) return this.#commitSet(commit, guard)
    const key = guard?.request.claims[0]!.key ?? [...expect, ...writes, ...record][0]!.key
    if (!guard) return this.#commits.alone(commit, key)
    const committing = this.#grants.changes(
      guard.request.id,
      this.#decisions.at(key, (_, machine, now) => machine.decide(commit, now)),
    )
    return commit.release ? this.#leaving.until(guard.request, committing) : committing
  }

  async #commitSet(commit: Commit, guard: Granted): Promise<CommitOutcome> {
    const { request } = guard
    this.#sets.committing(guard)
    const committing = this.#grants.changes(request.id, this.#commits.ofSet(commit, guard))
    const left = committing.then(({ written }) => written)
    this.#leaving.until(request, left).catch(() => undefined)
    this.#leaving.deciding(
      request.claims.map(({ key }) => key),
      committing,
    )
    try {
      const { outcome } = await committing
      if (outcome.state === 'committed') this.#sets.committed(guard)
      else this.#sets.refused(guard)
      return outcome
    } catch (error) {
      this.#sets.undecided(guard)
      throw error
    }
  }

  /** Notifies the holders of a key that a request waits for it. */
  #tellHolders(key: string, { session }: LockRequest): void {
    const known = this.#entries.known(key)
    for (const other of known?.entry.locks.requests ?? [])
      if (other.phase !== 'waiting' && other.phase !== 'reserved' && other.session !== session)
        this.#parts.waitsFor(other.session, { type: 'look', id: other.id, key, text: known?.text })
  }

  /** Starts freeing keys from dead requests ahead of a request. */
  #lookBehind(keys: readonly string[]): void {
    for (const key of keys) if (this.#requestsOf(key).some(({ set }) => set)) this.#dead.look(key)
    this.#freed(keys).catch(() => undefined)
  }

  /** Frees keys from sessions that are found to be dead or silent. Returns whether there are any. Never rejects. */
  async #freed(keys: readonly string[]): Promise<boolean> {
    const { sessions } = this.#parts
    const inUse = new Set(keys.flatMap(key => this.#requestsOf(key).map(({ session }) => session)))
    try {
      await Promise.all([sessions.lookUp([...inUse]), this.#lookUpSigns(keys)])
      const areAlive = [...inUse].every(session => !sessions.isDead(session))
      if (areAlive && !keys.some(key => this.#hasSilent(key))) return false
      const dead = new Set([...inUse].filter(session => sessions.isDead(session)))
      await Promise.all(
        keys.map(async key => {
          await this.#sweep(key)
          await this.#dead.free(key, dead)
        }),
      )
      return true
    } catch {
      return false
    }
  }

  /**
   * Looks up the signs of sessions of which nothing else is known, in the order of their turns. Returns whether there
   * are any.
   */
  async #lookUpSigns(keys: readonly string[]): Promise<boolean> {
    const sessions = keys.flatMap(key => {
      const overdue = this.#entries.overdue(key)
      const waiting = new Set(
        overdue.filter(({ phase }) => phase === 'waiting').map(({ session }) => session),
      )
      // The boxes of later requests may be dead, too, and each would miss its turn.
      const isMissed = overdue.some(({ phase }) => phase === 'reserved')
      return isMissed ? [...waiting] : [...waiting].slice(0, LOOKED_UP)
    })
    if (sessions.length > 0) await this.#signs.lookUp(sessions)
    return sessions.length > 0
  }

  /**
   * Looks up the signs of the sessions of requests, if there are any. Never rejects: without signs, boxes are
   * considered alive.
   */
  #lookUpSignsOf(requests: readonly KeyRequest[]): Promise<unknown> | undefined {
    if (requests.length === 0) return undefined
    const looking = this.#signs.lookUp(requests.map(({ session }) => session))
    return answered(looking, this.#parts.clock, HEARTBEAT_INTERVAL).catch(() => undefined)
  }

  /** Whether a request for only this key waits, and its box seems to be silent. */
  #hasSilent(key: string): boolean {
    return this.#entries.overdue(key).some(each => each.phase === 'waiting' && !this.#isCovered(each))
  }

  #isCovered(request: Pick<KeyRequest, 'id' | 'session'>): boolean {
    return !this.#parts.sessions.isDead(request.session) && this.#signs.isCovered(request)
  }

  #requestsOf(key: string): readonly KeyRequest[] {
    return this.#entries.known(key)?.entry.locks.requests ?? []
  }

  async #sweep(key: string): Promise<void> {
    if (key === ROOM) return this.#room.sweep()
    // Without signs, boxes are considered alive.
    await this.#lookUpSigns([key]).catch(() => undefined)
    const pointers = await this.#decisions.at(key, (state, machine, now) => {
      machine.decide({ type: 'sweepExpired', keys: [key] }, now)
      return state.pointers()
    })
    if (pointers.length > 0) this.#dead.look(key)
  }

  async #forceRelease(key: string, number: number): Promise<boolean> {
    const { isDone, pointers } = await this.#decisions.at(key, (state, machine, now) => ({
      isDone: machine.decide({ type: 'forceRelease', key, number }, now),
      pointers: state.pointers(),
    }))
    if (isDone) return true
    const homes = [...new Set(pointers.map(({ home }) => home))]
    const released = await Promise.all(
      homes.map(home =>
        this.#decisions.at(home, (_, machine, now) =>
          machine.decide({ type: 'forceRelease', key: home, number }, now),
        ),
      ),
    )
    if (!released.includes(true)) return false
    await this.#dead.free(key)
    return true
  }

  async #unlessFailed<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await this.#parts.repeat(work)
    } catch (error) {
      throw failureOf(error, this.#parts.place, UnavailableError)
    }
  }
}
