import type { Claim } from 'signalbox'
import {
  heartbeatWithin,
  type CheckIn,
  type Clock,
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
} from 'signalbox/engine'
import type { Decide } from './decisions.js'
import type { Decided } from './key-entry.js'
import type { Leaving } from './leaving.js'
import { homeOf } from './open-entry.js'
import type { OwnSet } from './own-set.js'
import { SetExits } from './set-exits.js'
import { SetQueues, type SetQueuesParts } from './set-queues.js'
import { grant, othersOf } from './set-rules.js'
import type { InRoom, WaitingRoom } from './waiting-room.js'

/**
 * Time for which a set that has ended is remembered, in milliseconds. A key that it leaves later stays marked as
 * awaited.
 */
const ENDED_FOR = 10_000

/** The parts of the engine that sets use. */
export interface SetsParts extends SetQueuesParts {
  readonly room: WaitingRoom
  readonly leaving: Pick<Leaving, 'decided'>
  /** Called with the keys of a set that waits. */
  readonly blocked: (keys: readonly string[]) => void
  /** Called with a set that does not find its keys free. */
  readonly notGranted: (id: string) => void
  /** Frees keys from sessions that are found to be dead, and returns whether there are any. */
  readonly freed: (keys: readonly string[]) => Promise<boolean>
  /** Finds out which of these sessions are dead. */
  readonly lookUp: (sessions: readonly string[]) => Promise<void>
  readonly read: (read: ReadSet, set: string) => Promise<ReadOutcome>
  /** Writes a commit to its other keys. */
  readonly apply: (home: string, decided: Decided) => Promise<void>
  readonly isWithdrawn: (request: LockRequest) => boolean
}

/**
 * Requests for several keys. The entry of the first key, the home, decides whether a set is granted; the entries of the
 * others refer to it. A set that finds all its keys free takes them at once. Any other waits in the waiting room for
 * the sets that came earlier, then in the queues of all its keys.
 */
export class Sets {
  readonly #parts: SetsParts
  readonly #clock: Clock
  readonly #queues: SetQueues
  readonly #exits: SetExits
  readonly #own = new Map<string, OwnSet>()
  /** The sets that were in the waiting room and have ended, in order. They may not have left all their keys. */
  readonly #ended = new Map<string, { readonly set: OwnSet; readonly at: number }>()
  /** The last enqueue of a set with each key, until it is answered. */
  readonly #entering = new Map<string, Promise<unknown>>()

  constructor(parts: SetsParts) {
    const { decisions, room, apply, clock } = parts
    this.#parts = parts
    this.#clock = clock
    this.#queues = new SetQueues(parts)
    this.#exits = new SetExits(decisions, room, apply, clock)
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

  /** Whether other sets wait in the waiting room for a key of a set that was there; undefined if that is not known. */
  isAwaited(id: string, key: string): boolean | undefined {
    const set = this.#own.get(id) ?? this.#ended.get(id)?.set
    return set?.isInRoom ? (set.wanted?.has(key) ?? true) : undefined
  }

  /** Whether a set had to wait on one of these keys not long ago. */
  areBusy(keys: readonly string[]): boolean {
    return this.#queues.areBusy(keys)
  }

  /** Settles when earlier sets of this box have joined the queues of these keys; undefined if there are none. */
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
    // A request that was in a queue before is probably still there.
    const isBehind = this.areWaitedFor(keys)
    const areFree = !isBehind && this.#parts.areFree(keys)
    // A commit of this box frees its keys at once.
    const decided = areFree ? this.#parts.leaving.decided(keys) : undefined
    if (decided) await decided
    if (this.#parts.isWithdrawn(request) || (isBehind && wait === 0)) return { state: 'busy' }
    const set: OwnSet = {
      request,
      terms: operation,
      stage: 'waiting',
      isInRoom: false,
      wanted: undefined,
      mayPass: false,
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
        ? await this.#queues.stand(set, operation, true, this.#queues.numberAbove(request))
        : ({ state: 'blocked', isAwaited: false } as const)
      // The first try may free a key from a dead box, and the second one a key from dead sets in the waiting room.
      for (let tries = 0; tries < 2 && wait === 0 && refusal?.state === 'blocked'; tries++) {
        if (!(await this.#mayTryAgain(set, refusal.isAwaited))) break
        refusal = await this.#queues.stand(set, operation, true, this.#queues.numberAbove(request))
      }
      if (refusal?.state === 'mismatch') return await this.#give(set, refusal)
      if (!refusal) return await this.#claim(set, operation)
      this.#parts.notGranted(request.id)
      if (isLikely) await this.#exits.leaveKeys(set)
      if (wait === 0) {
        this.#end(set)
        return { state: 'busy' }
      }
      set.isInRoom = true
      const status = await this.#inRoom(set, this.#parts.room.enter(request, operation))
      // mutant: enter-without-room
      if (status.state !== 'held') return this.#queued(set, operation)
      return await this.#standAndClaim(set, operation)
    } catch (error) {
      this.#end(set)
      throw await this.#exits.abandoned(set, error)
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
    const status = await this.#inRoom(set, this.#parts.room.checkIn(set.request, operation))
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
    // Several hints arrive together.
    set.waking ??= Promise.resolve().then(() => {
      set.waking = undefined
      return this.#woken(set)
    })
    return set.waking
  }

  async #woken(set: OwnSet): Promise<boolean> {
    if (set.stage === 'waiting') {
      const status = await this.#inRoom(set, this.#parts.room.checkIn(set.request, set.terms))
      if (status.state !== 'held') return status.state === 'gone'
      this.#queues.beginStanding(set)
    }
    // The check-in reads the keys that this box knows only from hints.
    if (this.#queues.seemsKept(set)) return true
    const refusal = await this.#queues.stand(set, set.terms, false, 0)
    return refusal?.state !== 'blocked'
  }

  async cancel(request: LockRequest): Promise<undefined> {
    const set = this.#own.get(request.id)
    if (set) this.#end(set)
    await Promise.all([
      this.#parts.room.leave(request),
      this.#exits.leaveKeys({ request, number: set?.number ?? 0 }),
    ])
    return undefined
  }

  /** Call before a commit of the set is decided. Its box may give up the set before it knows the outcome. */
  committing({ request }: Granted): void {
    this.#exits.committing(request.id)
  }

  /** Call when a commit of the set was rejected. An earlier one may still be applied. */
  refused({ request }: Granted): void {
    this.#exits.refused(request.id)
  }

  /** Call when it stays unknown whether a commit of the set was decided. */
  undecided({ request }: Granted): void {
    this.#exits.undecided(request.id)
  }

  async release(operation: Release): Promise<boolean> {
    const { request, number } = operation
    const set = this.#own.get(request.id)
    if (set) this.#end(set)
    return this.#exits.leave({ request, number }, (_, machine, now) => machine.decide(operation, now))
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
        this.#parts.decisions.at(key, (state, machine, now) => {
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

  /** Always gives up the keys, because only a read of many entries would show whether others wait for them. */
  async extendOrYield(operation: ExtendOrYield): Promise<RequestStatus> {
    const { request, number, next, lease, wait } = operation
    if (!(await this.release({ type: 'release', request, number })))
      return this.#own.has(next.id)
        ? this.checkIn({ type: 'checkIn', request: next, lease, wait })
        : { state: 'gone' }
    return this.enqueue({ type: 'enqueue', request: next, lease, wait })
  }

  /** Call when a commit has released the set. */
  committed({ request }: Granted): void {
    this.#exits.committed(request.id)
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
    this.#queues.beginStanding(set)
    set.granted = 0
    this.#queues.findKept(set)
    const areKept = set.here.size === set.request.claims.length
    const aim = this.#queues.seemsKept(set) ? this.#queues.numberAbove(set.request) : 0
    const refusal = areKept ? undefined : await this.#queues.stand(set, operation, false, aim)
    if (!refusal) return this.#claim(set, operation)
    if (refusal.state === 'blocked') {
      if (set.granted > 0) await this.#queues.waitAtHome(set, operation)
      return this.#queued(set, operation)
    }
    await this.cancel(set.request)
    return refusal.state === 'mismatch' ? refusal : { state: 'gone' }
  }

  /** Grants a set for which all keys are kept, at its home. */
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
      // Other sets may share these keys, so their entries must have the number before the number is used.
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
    // Not awaited: other sets that want its keys can now wait in the queues of these keys.
    this.#parts.room.leave(request).then(
      wanted => (set.wanted = wanted),
      () => undefined,
    )
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

  /**
   * Makes later numbers of the other keys that are shared greater than that of the set. Returns the greatest before.
   */
  async #raise({ request, number }: OwnSet): Promise<number> {
    const shared = othersOf(request).filter(({ mode }) => mode !== 'exclusive')
    const numbers = await Promise.all(
      shared.map(({ key }) =>
        this.#parts.decisions.at(key, state => {
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
    return read ? { ...status, read: await this.#parts.read(read, request.id) } : status
  }

  #queued({ request, stage }: OwnSet, terms: WaitTerms): RequestStatus {
    if (stage === 'ended') return { state: 'gone' }
    this.#parts.blocked(request.claims.map(({ key }) => key))
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
    await this.#exits.leaveKeys(set)
    return status
  }

  async #inRoom(set: OwnSet, asking: Promise<InRoom>): Promise<RequestStatus> {
    const { status, wanted } = await asking
    // While it is in the queues, others may enter the waiting room behind it.
    set.wanted = set.stage === 'waiting' ? wanted : undefined
    return status
  }

  /**
   * Whether a set that does not wait has a reason to try once more.
   * @param isAwaited whether its keys are free, but sets may wait for them
   */
  async #mayTryAgain(set: OwnSet, isAwaited: boolean): Promise<boolean> {
    const { request } = set
    if (!isAwaited) return this.#parts.freed(request.claims.map(({ key }) => key))
    let rivals = await this.#parts.room.rivals(request)
    if (rivals.length > 0) {
      await this.#parts.lookUp(rivals)
      rivals = await this.#parts.room.rivals(request)
    }
    set.mayPass = rivals.length === 0
    return set.mayPass
  }

  #end(set: OwnSet): void {
    const { id } = set.request
    set.stage = 'ended'
    this.#own.delete(id)
    if (!set.isInRoom) return
    const now = this.#clock.now()
    this.#ended.set(id, { set, at: now })
    for (const [other, { at }] of this.#ended) {
      if (at > now - ENDED_FOR) break
      this.#ended.delete(other)
    }
  }

  #atHome<T>({ claims }: LockRequest, decide: Decide<T>, lease?: number): Promise<T> {
    return this.#parts.decisions.at(homeOf(claims), decide, lease === undefined ? {} : { lease })
  }
}
