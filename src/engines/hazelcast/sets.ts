import type { Clock } from '../../clock.js'
import { Ahead, type Claim } from '../../engine/claim.js'
import {
  entryTtl,
  heartbeatWithin,
  type CheckIn,
  type Downgrade,
  type Enqueue,
  type ExtendOrYield,
  type Granted,
  type LockRequest,
  type ReadOutcome,
  type ReadSet,
  type Release,
  type RequestStatus,
  type WaitTerms,
} from '../../engine/contract.js'
import type { StateMachine } from '../../engine/state-machine.js'
import type { Decide, Decisions } from './decisions.js'
import type { Request } from '../../engine/lock-table.js'
import { DamagedValueError, IndeterminateError, UnavailableError } from '../../errors.js'
import { microseconds, type Decided } from './key-entry.js'
import type { Leaving } from './leaving.js'
import { homeOf, type OpenEntry } from './open-entry.js'
import type { WaitingRoom } from './waiting-room.js'

/** A set of this box. */
interface OwnSet {
  readonly request: LockRequest
  /** Of its last enqueue or check-in. */
  terms: WaitTerms
  stage: 'waiting' | 'standing' | 'held' | 'ended'
  /** Whether it waits in the waiting room. */
  isInRoom: boolean
  /** The greatest number that any of its keys had; once it is granted, its own. */
  number: number
  /** The number with which its home has granted it when it last asked its keys; 0 if it has not. */
  granted: number
  /** The keys that are kept for it until it leaves its home. */
  readonly here: Set<string>
  /** The check of its keys after a hint. */
  waking: Promise<boolean> | undefined
  /** When it last began to enter the queues, as clock time. */
  began: number
  /** Whether it has stood at home since then. */
  hasStood: boolean
}

/**
 * A set comes to its home within this time after it began to enter the queues, or never, in milliseconds. Other boxes
 * wait longer before they take a set that is missing there for dead.
 */
const ENTER_WITHIN = 2000

/** How long a key on which a set had to wait probably has other requests, in milliseconds. */
const BUSY_FOR = 5000

/** How long it matters that it is unknown whether a set has committed, in milliseconds: until no attempt to leave follows. */
const UNCLEAR_FOR = 600_000

/** What became of a set at one of its keys. */
type Stood =
  | {
      readonly state: 'here' | 'blocked' | 'ended'
      readonly number: number
      readonly isGranted?: boolean
      readonly isForeign?: boolean
      /** Whether it has joined the queue just now. Undefined if it is not in the queue. */
      readonly hasJoined?: boolean
    }
  | { readonly state: 'mismatch'; readonly max: number }

/**
 * Requests for several keys. The entry of the first key, the home, decides whether a set is granted; the entries of the
 * others refer to it. A set that finds all its keys free takes them at once. Any other waits in the waiting room for the
 * sets that came earlier, then in the queues of all its keys.
 */
export class Sets {
  readonly #decisions: Decisions
  readonly #room: WaitingRoom
  readonly #blocked: (keys: readonly string[]) => void
  readonly #notGranted: (id: string) => void
  readonly #waits: (key: string, request: LockRequest) => void
  readonly #areFree: (keys: readonly string[]) => boolean
  readonly #leaving: Pick<Leaving, 'decided'>
  readonly #freed: (keys: readonly string[]) => Promise<boolean>
  readonly #read: (read: ReadSet, set: string) => Promise<ReadOutcome>
  readonly #own = new Map<string, OwnSet>()
  /** When a set last had to wait on each key, as clock time. */
  readonly #busy = new Map<string, number>()
  /** The sets of which it is unknown whether they have committed. */
  readonly #unclear = new Map<string, 'underway' | 'unknown'>()
  /** The last enqueue of a set with each key, until it is answered. */
  readonly #entering = new Map<string, Promise<unknown>>()
  readonly #apply: (home: string, decided: Decided) => Promise<void>
  readonly #isWithdrawn: (request: LockRequest) => boolean
  readonly #clock: Clock

  /**
   * @param blocked is called with the keys of a set that waits.
   * @param notGranted is called with a set that does not find its keys free.
   * @param waits is called when a set has joined the queue of a key.
   * @param freed frees keys from sessions that are found to be dead, and returns whether there are any.
   */
  constructor(
    decisions: Decisions,
    room: WaitingRoom,
    blocked: (keys: readonly string[]) => void,
    notGranted: (id: string) => void,
    waits: (key: string, request: LockRequest) => void,
    freed: (keys: readonly string[]) => Promise<boolean>,
    areFree: (keys: readonly string[]) => boolean,
    leaving: Pick<Leaving, 'decided'>,
    read: (read: ReadSet, set: string) => Promise<ReadOutcome>,
    apply: (home: string, decided: Decided) => Promise<void>,
    isWithdrawn: (request: LockRequest) => boolean,
    clock: Clock,
  ) {
    this.#apply = apply
    this.#isWithdrawn = isWithdrawn
    this.#clock = clock
    this.#decisions = decisions
    this.#room = room
    this.#blocked = blocked
    this.#notGranted = notGranted
    this.#waits = waits
    this.#freed = freed
    this.#areFree = areFree
    this.#leaving = leaving
    this.#read = read
  }

  /** Whether this box has a request here that has not ended. */
  has(id: string): boolean {
    return this.#own.has(id)
  }

  /**
   * Whether a set of this box waits for others before it joins the queue of one of these keys. Later requests of this
   * box follow it.
   */
  areWaitedFor(keys: readonly string[]): boolean {
    return [...this.#own.values()].some(
      ({ stage, isInRoom, request }) =>
        stage === 'waiting' && isInRoom && request.claims.some(({ key }) => keys.includes(key)),
    )
  }

  /** Whether a set had to wait on one of these keys not long ago. */
  areBusy(keys: readonly string[]): boolean {
    const since = this.#clock.now() - BUSY_FOR
    return keys.some(key => (this.#busy.get(key) ?? -Infinity) > since)
  }

  /** Settles when the sets of this box that came before have joined the queues of these keys; undefined if none has to. */
  entered(claims: readonly Claim[]): Promise<unknown> | undefined {
    const entering = claims.flatMap(({ key }) => this.#entering.get(key) ?? [])
    return entering.length === 0 ? undefined : Promise.allSettled(entering)
  }

  enqueue(operation: Enqueue): Promise<RequestStatus> {
    const { claims } = operation.request
    const earlier = this.entered(claims)
    const status = earlier ? earlier.then(() => this.#enqueue(operation)) : this.#enqueue(operation)
    for (const { key } of claims) this.#entering.set(key, status)
    const over = (): void => {
      for (const { key } of claims) if (this.#entering.get(key) === status) this.#entering.delete(key)
    }
    status.then(over, over)
    return status
  }

  async #enqueue(operation: Enqueue): Promise<RequestStatus> {
    const { request, wait } = operation
    if (this.#own.has(request.id)) return this.checkIn({ ...operation, type: 'checkIn' })
    const keys = request.claims.map(({ key }) => key)
    // Another request that is known to be there is probably still there.
    const isBehind = this.areWaitedFor(keys)
    const areFree = !isBehind && this.#areFree(keys)
    // A commit of this box frees its keys at once.
    const decided = areFree ? this.#leaving.decided(keys) : undefined
    if (decided) await decided
    if (this.#isWithdrawn(request) || (isBehind && wait === 0)) return { state: 'busy' }
    const set: OwnSet = {
      request,
      terms: operation,
      stage: 'waiting',
      isInRoom: false,
      number: 0,
      granted: 0,
      here: new Set(),
      waking: undefined,
      began: this.#clock.now(),
      hasStood: false,
    }
    this.#own.set(request.id, set)
    try {
      const isLikely = wait === 0 || areFree
      let refusal = isLikely
        ? await this.#stand(set, operation, true, this.#numberAbove(request))
        : ({ state: 'blocked' } as const)
      if (refusal?.state === 'blocked' && wait === 0 && (await this.#freed(keys)))
        refusal = await this.#stand(set, operation, true, this.#numberAbove(request))
      if (refusal?.state === 'mismatch') return await this.#give(set, refusal)
      if (!refusal) return await this.#claim(set, operation)
      this.#notGranted(request.id)
      if (isLikely) await this.#leaveKeys(set)
      if (wait === 0) {
        this.#end(set)
        return { state: 'busy' }
      }
      set.isInRoom = true
      const status = await this.#room.enter(request, operation)
      // mutant: enter-without-room
      if (status.state !== 'held') return this.#queued(set, operation)
      return await this.#standAndClaim(set, operation)
    } catch (error) {
      this.#end(set)
      throw await this.#abandoned(set, error)
    }
  }

  async checkIn(operation: CheckIn): Promise<RequestStatus> {
    const set = this.#own.get(operation.request.id)
    if (!set) return { state: 'gone' }
    set.terms = operation
    if (set.stage === 'held') return this.#checkInHeld(set, operation)
    if (set.stage === 'standing') {
      const status = await this.#standAndClaim(set, operation)
      if (status.state !== 'queued') return status
    }
    const status = await this.#room.checkIn(set.request, operation)
    if (status.state === 'gone') {
      await this.cancel(set.request)
      return { state: 'gone' }
    }
    const isNext = status.state === 'held' && set.stage === 'waiting'
    return isNext ? this.#standAndClaim(set, operation) : this.#queued(set, operation)
  }

  /** Whether this box has the set, and it is not granted. */
  isWaiting(id: string): boolean {
    const stage = this.#own.get(id)?.stage
    return stage === 'waiting' || stage === 'standing'
  }

  /** Handles a hint that a set may have another of its keys. Returns whether it should check in. */
  async woken(id: string): Promise<boolean> {
    const set = this.#own.get(id)
    if (!set || set.stage === 'held') return true
    // Hints come together.
    set.waking ??= Promise.resolve().then(() => {
      set.waking = undefined
      return this.#woken(set)
    })
    return set.waking
  }

  async #woken(set: OwnSet): Promise<boolean> {
    if (set.stage === 'waiting') {
      const status = await this.#room.checkIn(set.request, set.terms)
      if (status.state !== 'held') return status.state === 'gone'
      this.#beginStanding(set)
    }
    // The check-in asks the keys of which this box has only hints.
    if (this.#seemsKept(set)) return true
    const refusal = await this.#stand(set, set.terms, false, 0)
    return refusal?.state !== 'blocked'
  }

  async cancel(request: LockRequest): Promise<undefined> {
    const set = this.#own.get(request.id)
    if (set) this.#end(set)
    await Promise.all([this.#room.leave(request), this.#leaveKeys({ request, number: set?.number ?? 0 })])
    return undefined
  }

  /** A commit of the set is about to be decided. Its box may give up the set before it knows the outcome. */
  committing({ request }: Granted): void {
    if (!this.#unclear.has(request.id)) this.#unclear.set(request.id, 'underway')
  }

  /** The commit of the set was refused. An earlier one may still be applied. */
  refused({ request }: Granted): void {
    if (this.#unclear.get(request.id) === 'underway') this.#unclear.delete(request.id)
  }

  /** It stays unknown whether the commit of the set was decided. */
  undecided({ request }: Granted): void {
    this.#unclear.set(request.id, 'unknown')
    this.#clock.after(UNCLEAR_FOR, () => this.#unclear.delete(request.id), false)
  }

  async release(operation: Release): Promise<boolean> {
    const { request, number } = operation
    const set = this.#own.get(request.id)
    if (set) this.#end(set)
    return this.#leave({ request, number }, (_, machine, now) => machine.decide(operation, now))
  }

  async downgrade(operation: Downgrade): Promise<boolean> {
    const { request } = operation
    const isDone = await this.#atHome(request, (state, machine, now) => {
      if (!machine.decide(operation, now)) return false
      state.sharePart(request.id)
      return true
    })
    if (!isDone) return false
    await Promise.all(
      othersOf(request).map(({ key }) =>
        this.#decisions.at(key, (state, machine, now) => {
          if (!state.part(request.id)) return
          // Others that share the key are granted after it.
          // mutant: downgraded-keys-keep-numbers
          state.raiseNumber(operation.number)
          state.sharePart(request.id)
          machine.decide({ type: 'sweepExpired', keys: [key] }, now)
        }),
      ),
    )
    return true
  }

  /** Always gives up the keys: whether others wait for any of them is in many entries. */
  async extendOrYield(operation: ExtendOrYield): Promise<RequestStatus> {
    const { request, number, next, lease, wait } = operation
    if (!(await this.release({ type: 'release', request, number })))
      return this.#own.has(next.id)
        ? this.checkIn({ type: 'checkIn', request: next, lease, wait })
        : { state: 'gone' }
    return this.enqueue({ type: 'enqueue', request: next, lease, wait })
  }

  /** The set was released by its commit. */
  committed({ request }: Granted): void {
    this.#unclear.delete(request.id)
    const set = this.#own.get(request.id)
    if (set) this.#end(set)
  }

  async #checkInHeld(set: OwnSet, operation: CheckIn): Promise<RequestStatus> {
    const status = await this.#atHome(
      set.request,
      (_, machine, now) => machine.decide({ ...operation, read: undefined }, now),
      operation.lease,
    )
    if (status.state !== 'held') this.#end(set)
    return status.state === 'held' ? this.#withRead(set, status, operation.read) : status
  }

  async #standAndClaim(set: OwnSet, operation: Enqueue | CheckIn): Promise<RequestStatus> {
    this.#beginStanding(set)
    set.granted = 0
    this.#findKept(set)
    const areKept = set.here.size === set.request.claims.length
    const aim = this.#seemsKept(set) ? this.#numberAbove(set.request) : 0
    const refusal = areKept ? undefined : await this.#stand(set, operation, false, aim)
    if (!refusal) return this.#claim(set, operation)
    if (refusal.state === 'blocked') {
      if (set.granted > 0) await this.#waitAtHome(set, operation)
      return this.#queued(set, operation)
    }
    await this.cancel(set.request)
    return refusal.state === 'mismatch' ? refusal : { state: 'gone' }
  }

  /** The set has its home, but not all other keys. Its box may die, so that it must not have its lease yet. */
  async #waitAtHome(set: OwnSet, terms: WaitTerms): Promise<void> {
    set.granted = 0
    await this.#atHome(set.request, state => state.waitPart(set.request.id, entryTtl(terms)))
  }

  /** Finds the keys that are kept for the set, as this box has read or written. */
  #findKept(set: OwnSet): void {
    const { id, claims } = set.request
    for (const { key } of claims) {
      const locks = this.#decisions.entries.certain(key)?.entry.locks
      if (set.here.has(key) || !locks?.requests.some(each => each.id === id && each.phase !== 'waiting'))
        continue
      set.here.add(key)
      set.number = Math.max(set.number, locks.number)
    }
  }

  /** Whether all keys are free or kept for the set, as far as it is known. */
  #seemsKept({ request, here }: OwnSet): boolean {
    const { entries } = this.#decisions
    return request.claims.every(
      ({ key }) =>
        here.has(key) ||
        entries
          .known(key)
          ?.entry.locks.requests.some(({ id, phase }) => id === request.id && phase !== 'waiting') ||
        (!this.#busy.has(key) && this.#areFree([key])),
    )
  }

  /** The waiting room has granted the set. */
  #beginStanding(set: OwnSet): void {
    if (set.stage !== 'waiting') return
    set.stage = 'standing'
    set.began = this.#clock.now()
    set.hasStood = false
    set.granted = 0
    set.here.clear()
  }

  /**
   * Enters the queues of all keys; if it stands there already, keeps its place. Returns undefined if all keys are kept
   * for it.
   * @param onlyFree whether to enter only queues in which it need not wait.
   * @param aim the number with which its home grants it, if all keys have smaller ones; 0 if it does not yet.
   */
  async #stand(
    set: OwnSet,
    terms: WaitTerms,
    onlyFree: boolean,
    aim: number,
  ): Promise<
    Exclude<RequestStatus, { state: 'held' | 'queued' }> | { readonly state: 'blocked' } | undefined
  > {
    const { request } = set
    const home = homeOf(request.claims)
    // A key is kept for the set as long as its home has the set. One that it shares learns the number of the grant.
    const claims = request.claims.filter(
      ({ key, mode }) => key === home || !set.here.has(key) || (aim > 0 && mode !== 'exclusive'),
    )
    set.granted = 0
    const settled = await Promise.allSettled(
      claims.map(async claim => ({ claim, at: await this.#standAt(set, claim, terms, onlyFree, aim) })),
    )
    const errors = settled.flatMap(each => (each.status === 'rejected' ? [each.reason as Error] : []))
    // If one change may have been applied, the request may be somewhere.
    const error = errors.find(each => each instanceof IndeterminateError) ?? errors[0]
    if (error) throw error
    const stood = settled.flatMap(each => (each.status === 'fulfilled' ? [each.value] : []))
    for (const { claim, at } of stood) {
      if (at.state === 'mismatch') return { state: 'mismatch', key: claim.key, max: at.max }
      if (at.state === 'ended') return { state: 'gone' }
      set.number = Math.max(set.number, at.number)
      if (at.state === 'here') set.here.add(claim.key)
      else if (at.isForeign) this.#isBusy(claim.key)
      if (at.hasJoined) this.#waits(claim.key, request)
      if (at.isGranted) set.granted = aim
    }
    return stood.some(({ at }) => at.state === 'blocked') ? { state: 'blocked' } : undefined
  }

  #isBusy(key: string): void {
    const now = this.#clock.now()
    this.#busy.delete(key)
    this.#busy.set(key, now)
    for (const [other, at] of this.#busy) {
      if (at > now - BUSY_FOR) break
      this.#busy.delete(other)
    }
  }

  /** A number above those of all keys, as far as they are known. */
  #numberAbove({ claims }: LockRequest): number {
    const { entries } = this.#decisions
    const known = claims.map(({ key }) => entries.known(key)?.entry.locks.number ?? 0)
    return Math.max(...known.map(number => number + 1), microseconds())
  }

  async #standAt(
    set: OwnSet,
    claim: Claim,
    terms: WaitTerms,
    onlyFree: boolean,
    aim: number,
  ): Promise<Stood> {
    const { request } = set
    const { key } = claim
    const { id } = request
    const isHome = key === homeOf(request.claims)
    const ttl = entryTtl(terms)
    const stood = await this.#decisions.at(
      key,
      (state, machine, now): Stood => {
        const { number } = state
        const isPresent = state.part(id) !== undefined
        // A hint may come late.
        // mutant: stand-after-grant
        if (set.stage === 'ended' || set.stage === 'held')
          return { state: isPresent ? 'here' : 'ended', number }
        if (state.hasEnded(id)) return { state: 'ended', number }
        const max = otherMax(state, claim)
        if (max !== undefined) return { state: 'mismatch', max }
        if (isPresent) state.keepPart(id, ttl)
        // Another box may have freed the other keys meanwhile.
        // mutant: home-again
        else if (isHome && (set.hasStood || now - set.began > ENTER_WITHIN)) return { state: 'ended', number }
        else if (onlyFree && !isFree(state, machine, request, claim, now))
          return { state: 'blocked', number, isForeign: isForeign(state, request) }
        else state.appendPart(request, terms.lease, ttl)
        machine.decide({ type: 'sweepExpired', keys: [key] }, now)
        const part = state.part(id)!
        if (part.phase === 'waiting')
          return { state: 'blocked', number, isForeign: isForeign(state, request), hasJoined: !isPresent }
        const isGranted = isHome && aim > number
        // Others may share the key, so that it has to know the number before it is used.
        // mutant: free-keys-keep-numbers
        if (aim > number && claim.mode !== 'exclusive') state.raiseNumber(aim)
        if (isGranted) {
          state.raiseNumber(aim)
          grant(state, part, aim, terms.lease, now)
        }
        return { state: 'here', number, isGranted }
      },
      { about: id, lease: terms.lease },
    )
    if (isHome && (stood.state === 'here' || (stood.state === 'blocked' && stood.hasJoined !== undefined)))
      set.hasStood = true
    return stood
  }

  /** All keys are kept for the set: the home grants it. */
  async #claim(set: OwnSet, operation: Enqueue | CheckIn): Promise<RequestStatus> {
    const { request } = set
    const { read } = operation
    // All keys had smaller numbers, and have this one now.
    const isGranted = set.granted > set.number
    const status: RequestStatus = isGranted
      ? { state: 'held', id: request.id, number: set.granted }
      : await this.#claimHome(set, operation)
    if (status.state === 'held') set.number = Math.max(set.number, status.number)
    if (status.state !== 'held' || set.stage === 'ended') {
      await this.cancel(request)
      return { state: 'gone' }
    }
    if (!isGranted) {
      // Others may share these keys, so that these have to know the number before it is used.
      // mutant: shared-keys-keep-numbers
      const greatest = await this.#raise(set)
      if (greatest >= status.number) {
        set.number = greatest
        return this.#claim(set, operation)
      }
    }
    const hasWaited = set.stage === 'standing'
    set.stage = 'held'
    if (!hasWaited) return this.#withRead(set, status, read)
    // Not waited for: other sets that want its keys can now wait in the queues of these keys.
    this.#room.leave(request).catch(() => undefined)
    return this.#withRead(set, status, read)
  }

  #claimHome({ request, number }: OwnSet, { lease }: Enqueue | CheckIn): Promise<RequestStatus> {
    const { id } = request
    return this.#atHome(
      request,
      (state, _machine, now): RequestStatus => {
        const part = state.part(id)
        if (part?.phase !== 'held') return { state: 'gone' }
        const isNewer = part.number <= number
        if (isNewer) state.raiseNumber(number)
        grant(state, part, isNewer ? state.nextNumber() : part.number, lease, now)
        return { state: 'held', id, number: part.number }
      },
      lease,
    )
  }

  /** Makes later numbers of the other keys that are shared greater than that of the set. Returns the greatest before. */
  async #raise({ request, number }: OwnSet): Promise<number> {
    const shared = othersOf(request).filter(({ mode }) => mode !== 'exclusive')
    const numbers = await Promise.all(
      shared.map(({ key }) =>
        this.#decisions.at(key, state => {
          const before = state.number
          state.raiseNumber(number)
          return before
        }),
      ),
    )
    return Math.max(0, ...numbers)
  }

  async #withRead(
    { request }: OwnSet,
    status: RequestStatus & { state: 'held' },
    read: ReadSet | undefined,
  ): Promise<RequestStatus> {
    return read ? { ...status, read: await this.#read(read, request.id) } : status
  }

  #queued({ request, stage }: OwnSet, terms: WaitTerms): RequestStatus {
    if (stage === 'ended') return { state: 'gone' }
    this.#blocked(request.claims.map(({ key }) => key))
    return {
      state: 'queued',
      id: request.id,
      place: 0,
      checkInAfter: heartbeatWithin(terms),
      sessionsAhead: [],
    }
  }

  async #give(set: OwnSet, status: RequestStatus): Promise<RequestStatus> {
    this.#end(set)
    await this.#leaveKeys(set)
    return status
  }

  /** Leaves the keys of a set whose enqueue failed. Returns the error for its caller. */
  async #abandoned({ request }: OwnSet, error: unknown): Promise<unknown> {
    const leaving = await Promise.allSettled([
      this.#room.leave(request),
      ...request.claims.map(({ key }) =>
        this.#decisions.at(key, (state, machine, now) => {
          state.withdraw(request.id)
          machine.decide({ type: 'sweepExpired', keys: [key] }, now)
        }),
      ),
    ])
    // A damaged entry has no request of this box.
    const isLeft = leaving.every(
      each => each.status === 'fulfilled' || each.reason instanceof DamagedValueError,
    )
    if (isLeft || !(error instanceof UnavailableError)) return error
    return new IndeterminateError(error.message, { engine: error.engine, cause: error })
  }

  #end(set: OwnSet): void {
    set.stage = 'ended'
    this.#own.delete(set.request.id)
  }

  async #leaveKeys(set: Pick<OwnSet, 'request' | 'number'>): Promise<void> {
    await this.#leave(set, (state, machine, now) => {
      state.withdraw(set.request.id)
      machine.decide({ type: 'sweepExpired', keys: [state.key] }, now)
    })
  }

  /** Leaves the home and the other keys at the same time, unless the home may have decided a commit. */
  async #leave<T>({ request, number }: Pick<OwnSet, 'request' | 'number'>, leaveHome: Decide<T>): Promise<T> {
    // mutant: unclear-commit-undone
    if (!this.#unclear.has(request.id)) {
      const [left] = await Promise.all([this.#atHome(request, leaveHome), this.#leaveOthers(request, number)])
      return left
    }
    const { left, decided } = await this.#atHome(request, (state, machine, now) => ({
      decided: state.decided.find(({ id }) => id === request.id),
      left: leaveHome(state, machine, now),
    }))
    if (decided) await this.#apply(homeOf(request.claims), decided)
    else await this.#leaveOthers(request, number)
    return left
  }

  async #leaveOthers(request: LockRequest, number: number): Promise<void> {
    await Promise.all(
      othersOf(request).map(({ key }) =>
        this.#decisions.at(key, (state, machine, now) => {
          if (!state.part(request.id)) return
          state.raiseNumber(number)
          machine.decide({ type: 'cancel', request }, now)
        }),
      ),
    )
  }

  #atHome<T>({ claims }: LockRequest, decide: Decide<T>, lease?: number): Promise<T> {
    return this.#decisions.at(homeOf(claims), decide, lease === undefined ? {} : { lease })
  }
}

function othersOf({ claims }: LockRequest): readonly Claim[] {
  const home = homeOf(claims)
  return claims.filter(({ key }) => key !== home)
}

/** Grants a set at its home. */
function grant(state: OpenEntry, part: Request, number: number, lease: number, now: number): void {
  part.number = number
  part.lease = lease
  part.expires = now + lease
  state.changed(part)
}

/** Whether a claim could be granted at once. Expired requests are dropped first. */
function isFree(
  state: OpenEntry,
  machine: StateMachine,
  request: LockRequest,
  claim: Claim,
  now: number,
): boolean {
  machine.decide({ type: 'sweepExpired', keys: [claim.key] }, now)
  const ahead = new Ahead()
  for (const other of state.queue(claim.key) ?? []) {
    const isSilent = other.request.phase === 'waiting' && state.hasExpired(other.request, now)
    if (other.request.id === request.id || isSilent) continue
    ahead.add(other.claim)
    if (!ahead.admits(claim)) return false
  }
  return true
}

/** Whether another box has requests for the key. */
function isForeign(state: OpenEntry, { session }: LockRequest): boolean {
  return [...state.requests()].some(other => other.session !== session)
}

/** The `max` with which the key is in use, if the claim has another one. */
function otherMax(state: OpenEntry, claim: Claim): number | undefined {
  if (claim.mode !== 'permits') return undefined
  for (const { claim: other } of state.queue(claim.key) ?? [])
    if (other.mode === 'permits' && other.max !== claim.max) return other.max
  return undefined
}
