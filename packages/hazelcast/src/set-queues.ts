import { IndeterminateError, type Claim } from 'signalbox'
import { entryTtl, type Clock, type LockRequest, type RequestStatus, type WaitTerms } from 'signalbox/engine'
import type { Decisions } from './decisions.js'
import { microseconds } from './key-entry.js'
import { homeOf } from './open-entry.js'
import type { OwnSet } from './own-set.js'
import { grant, isForeign, isFree, otherMax } from './set-rules.js'

/**
 * Maximum time from the moment when a set begins to enter the queues until it is at its home, in milliseconds. It does
 * not enter later. Other boxes wait longer before they consider a set dead that is missing there.
 */
const ENTER_WITHIN = 2000

/** A key on which a set had to wait probably has other requests for this long, in milliseconds. */
const BUSY_FOR = 5000

/** The state of a set at one of its keys. */
type Stood =
  | {
      readonly state: 'here' | 'blocked' | 'ended'
      readonly number: number
      readonly isGranted?: boolean
      readonly isForeign?: boolean
      /** Whether the key is free, but sets may wait in the waiting room for it. */
      readonly isAwaited?: boolean
      /** Whether it has joined the queue just now. Undefined if it is not in the queue. */
      readonly hasJoined?: boolean
    }
  | { readonly state: 'mismatch'; readonly max: number }

/** The parts of the engine that the queues of sets use. */
export interface SetQueuesParts {
  readonly decisions: Decisions
  readonly clock: Clock
  /** Whether no other request claims one of these keys, as far as it is known. */
  readonly areFree: (keys: readonly string[]) => boolean
  /** Called when a set has joined the queue of a key. */
  readonly waits: (key: string, request: LockRequest) => void
}

/** Puts sets of this box into the queues of their keys. */
export class SetQueues {
  readonly #decisions: Decisions
  readonly #clock: Clock
  readonly #areFree: (keys: readonly string[]) => boolean
  readonly #waits: (key: string, request: LockRequest) => void
  /** The clock time at which a set last had to wait on each key. */
  readonly #busy = new Map<string, number>()

  constructor({ decisions, clock, areFree, waits }: SetQueuesParts) {
    this.#decisions = decisions
    this.#clock = clock
    this.#areFree = areFree
    this.#waits = waits
  }

  /** Whether a set had to wait on one of these keys not long ago. */
  areBusy(keys: readonly string[]): boolean {
    const since = this.#clock.now() - BUSY_FOR
    return keys.some(key => (this.#busy.get(key) ?? -Infinity) > since)
  }

  /**
   * Enters the queues of all keys; if the set is in a queue already, it keeps its place. Returns undefined if all keys
   * are kept for it.
   * @param onlyFree whether to enter only queues in which it need not wait.
   * @param aim the number with which its home grants it, if all keys have smaller ones; 0 if it does not yet.
   */
  async stand(
    set: OwnSet,
    terms: WaitTerms,
    onlyFree: boolean,
    aim: number,
  ): Promise<
    | Exclude<RequestStatus, { state: 'held' | 'queued' }>
    | { readonly state: 'blocked'; readonly isAwaited: boolean }
    | undefined
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
    // If one change may have been applied, the request may be in a queue.
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
    const blocked = stood.flatMap(({ at }) => (at.state === 'blocked' ? [at] : []))
    if (blocked.length === 0) return undefined
    // While it waits here, others may enter the waiting room behind it.
    set.wanted = undefined
    return { state: 'blocked', isAwaited: blocked.every(({ isAwaited }) => isAwaited) }
  }

  /** Call when the waiting room has granted the set. */
  beginStanding(set: OwnSet): void {
    if (set.stage !== 'waiting') return
    set.stage = 'standing'
    set.began = this.#clock.now()
    set.hasStood = false
    set.granted = 0
    set.here.clear()
  }

  /** Whether all keys are free or kept for the set, as far as it is known. */
  seemsKept({ request, here }: OwnSet): boolean {
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

  /** Finds the keys that are kept for the set, in entries that this box has read or written. */
  findKept(set: OwnSet): void {
    const { id, claims } = set.request
    for (const { key } of claims) {
      const locks = this.#decisions.entries.certain(key)?.entry.locks
      if (set.here.has(key) || !locks?.requests.some(each => each.id === id && each.phase !== 'waiting'))
        continue
      set.here.add(key)
      set.number = Math.max(set.number, locks.number)
    }
  }

  /**
   * Takes back the grant of a set that has its home but not all other keys. Its box may die, so it must not have its
   * lease yet.
   */
  async waitAtHome(set: OwnSet, terms: WaitTerms): Promise<void> {
    set.granted = 0
    const { id, claims } = set.request
    await this.#decisions.at(homeOf(claims), state => state.waitPart(id, entryTtl(terms)))
  }

  /** Returns a number above those of all keys, as far as they are known. */
  numberAbove({ claims }: LockRequest): number {
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
        // A set in the waiting room comes first.
        // mutant: pass-waiting-room
        else if (onlyFree && claim.mode === 'exclusive' && state.isAwaited && !set.mayPass)
          return { state: 'blocked', number, isAwaited: true }
        else {
          state.appendPart(request, terms.lease, ttl)
          if (set.isInRoom || set.mayPass) state.setAwaited(set.isInRoom)
        }
        machine.decide({ type: 'sweepExpired', keys: [key] }, now)
        const part = state.part(id)!
        if (part.phase === 'waiting')
          return { state: 'blocked', number, isForeign: isForeign(state, request), hasJoined: !isPresent }
        const isGranted = isHome && aim > number
        // Other sets may share the key, so its entry must have the number before the number is used.
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

  #isBusy(key: string): void {
    const now = this.#clock.now()
    this.#busy.delete(key)
    this.#busy.set(key, now)
    for (const [other, at] of this.#busy) {
      if (at > now - BUSY_FOR) break
      this.#busy.delete(other)
    }
  }
}
