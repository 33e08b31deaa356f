import type { Claim } from 'signalbox'
import {
  MemoryState,
  coverTtl,
  sharedClaims,
  timeOfVersion,
  type Clock,
  type LockRequest,
  type RecordedId,
  type Request,
  type SessionInfo,
  type Versioned,
} from 'signalbox/engine'
import {
  marked,
  microseconds,
  textOfMark,
  type Decided,
  type KeyChange,
  type KeyEntry,
  type KeyRequest,
  type Mark,
  type RecordedIds,
  type SetHome,
  type SetPointer,
} from './key-entry.js'
import type { Sightings } from './sightings.js'
import type { Signs } from './signs.js'
import { coveredGrants, type CoveredGrant, type GrantSigns } from './grant-signs.js'

/** Maximum number of sets that ended in an entry and are still known there. */
const MAX_ENDED = 16

/** The parts that decisions use in addition to the entry. */
export interface EntryContext {
  readonly sightings: Sightings
  readonly signs: Pick<Signs, 'isCovered' | 'seen'>
  readonly grants: Pick<GrantSigns, 'renewedAt' | 'hasEnded'>
  /**
   * Whether other sets wait in the waiting room for a key of a set that was there; undefined if this box does not know.
   */
  readonly isAwaited: (id: string, key: string) => boolean | undefined
  /** Returns a version above this one that this box has never used. */
  readonly nextVersion: (above: number) => number
  /** The processes of sessions, if an operation reports them. */
  readonly sessions?: ReadonlyMap<string, SessionInfo>
}

/** A set at another key than its first one. */
export interface Pointer {
  readonly id: string
  readonly session: string
  readonly home: string
  /** The change with which it came. */
  readonly since: string
  /** Whether it holds the key. */
  readonly isHere: boolean
}

/** The part of a set in this entry. */
interface SetPart {
  set: SetHome | SetPointer
  /** The clock time at which it expires; Infinity unless this is its home. */
  expires: number
}

/**
 * The entry of a key as a state on which operations for this key are decided. It is created for one batch of them, and
 * discarded if the entry turns out not to be the newest. To the lock table, the part of a set is a request for this
 * key alone, which holds the key as soon as it is its turn.
 */
export class OpenEntry extends MemoryState {
  /** Whether an operation has changed anything. */
  isChanged = false
  /**
   * The grants that were removed although signs still renew them. These signs must be ended before the change is saved.
   */
  readonly signsToEnd: CoveredGrant[] = []
  readonly key: string
  readonly #entry: KeyEntry
  readonly #context: EntryContext
  readonly #now: number
  readonly #before = new Map<Request, { readonly record: KeyRequest; readonly expires: number }>()
  readonly #parts = new Map<Request, SetPart>()
  /**
   * The requests with a new expiry. It may equal the old one, if this box has only just seen that. Other boxes have
   * seen it earlier.
   */
  readonly #renewed = new Set<Request>()
  /** The grants that refer to these signs from now on. */
  readonly #covered = new Map<Request, number>()
  #ended: readonly string[]
  #decided: readonly Decided[]
  #isAwaited: boolean
  #number: number
  #stamp: number
  #version: number
  #ids: RecordedIds
  #value: string | undefined

  constructor(key: string, entry: KeyEntry, context: EntryContext, clock: Clock) {
    super(0, clock)
    this.key = key
    this.#entry = entry
    this.#context = context
    this.#now = clock.now()
    const { stamp, version, ids, value, locks } = entry
    this.#stamp = stamp
    this.#version = version
    this.#ids = ids
    this.#value = value
    this.#number = locks.number
    this.#ended = locks.ended
    this.#decided = locks.decided
    this.#isAwaited = locks.isAwaited
    const wall = Date.now()
    for (const each of locks.requests) {
      const { id, session, claim, phase, lease, number, label, set } = each
      const expires = set && 'home' in set ? Infinity : this.#expiryOf(each)
      const since = this.#now - Math.max(wall - each.since, 0)
      const kept = phase === 'here' ? 'held' : phase
      // A set checks in at its home.
      const isCovered = !set && phase === 'waiting' && context.signs.isCovered(each)
      const request = {
        id,
        session,
        claims: [claim],
        phase: kept,
        expires,
        isCovered,
        lease,
        number,
        label,
        since,
      }
      super.append(request)
      this.#before.set(request, { record: each, expires })
      if (set) this.#parts.set(request, { set, expires })
    }
  }

  override append(request: Request): void {
    this.isChanged = true
    super.append(request)
  }

  override remove(request: Request): void {
    this.isChanged = true
    const record = this.#before.get(request)?.record
    for (const grant of coveredGrants(record ? [record] : []))
      if (!this.#context.grants.hasEnded(grant)) this.signsToEnd.push(grant)
    const part = this.#parts.get(request)
    if (part) {
      if (!('home' in part.set)) this.end(request.id)
      this.#left(request.id)
    }
    super.remove(request)
  }

  /** Omits sets whose home is another key. Their home decides when they leave, because they may have committed. */
  override requestsOf(session: string): Request[] {
    return super.requestsOf(session).filter(request => !this.#isPointer(request))
  }

  /** Returns those requests of a session that are known to be dead. */
  deadOf(session: string): Request[] {
    return this.requestsOf(session).filter(({ expires }) => expires === -Infinity)
  }

  override changed(request: Request): void {
    this.isChanged = true
    const part = this.#parts.get(request)
    if (!part || request.phase !== 'reserved') {
      this.#renewed.add(request)
      if (part) part.expires = request.expires
    } else {
      // The key is kept for the set until it has all of its keys.
      request.phase = 'held'
      request.expires = part.expires
    }
  }

  /** Makes a grant refer to a sign of its session, which renews it from now on. */
  cover(id: string, sign: number): void {
    this.#covered.set(this.request(id)!, sign)
    this.isChanged = true
  }

  /** The number of the newest grant. */
  get number(): number {
    return this.#number
  }

  /** The version of the newest change of the value or of its IDs. */
  get stamp(): number {
    return this.#stamp
  }

  get ids(): RecordedIds {
    return this.#ids
  }

  /** Commits of sets that are not yet applied to all keys. */
  get decided(): readonly Decided[] {
    return this.#decided
  }

  override nextNumber(): number {
    return (this.#number = Math.max(this.#number + 1, microseconds()))
  }

  /** Makes all later numbers of this key greater than this one. */
  raiseNumber(number: number): void {
    if (number <= this.#number) return
    this.#number = number
    this.isChanged = true
  }

  override member(session: string): SessionInfo | undefined {
    return this.#context.sessions?.get(session)
  }

  override seen(session: string): number {
    return this.#context.signs.seen(session)
  }

  override values(keys: readonly string[]): Versioned[] {
    return keys.map(() => {
      const value = this.#value
      if (value === undefined) return { value, version: 0 }
      return { value, version: this.#version, changed: timeOfVersion(this.#version) }
    })
  }

  override put(_key: string, value: string | undefined, version: number): void {
    // Deleting a missing value changes nothing.
    if (value === undefined && this.#value === undefined) return
    this.isChanged = true
    this.#value = value
    this.#version = value === undefined ? 0 : version
    this.#stamp = version
    this.#ids = live(this.#ids)
  }

  /** Makes all later stamps of this key greater than this one. */
  raiseStamp(stamp: number): void {
    if (stamp <= this.#stamp) return
    this.#stamp = stamp
    this.isChanged = true
  }

  override nextVersion(): number {
    return this.versionAbove(this.#stamp)
  }

  /** Returns a version above this one that this box has never used. */
  versionAbove(version: number): number {
    return this.#context.nextVersion(version)
  }

  override recorded(ids: readonly RecordedId[]): boolean[] {
    const known = live(this.#ids)
    return ids.map(({ id }) => known.some(([other]) => other === id))
  }

  override record(_key: string, id: string, retention: number): void {
    this.isChanged = true
    this.#stamp = this.nextVersion()
    this.#ids = [...live(this.#ids), [id, Date.now() + retention]]
  }

  /** Whether a request has expired, so that it blocks no other. A sign of its session covers one that waits. */
  hasExpired({ phase, expires, isCovered, session, lease }: Request, now: number): boolean {
    const isCoveredNow = phase === 'waiting' && isCovered && now < this.seen(session) + coverTtl(lease)
    return now >= expires && !isCoveredNow
  }

  /** Returns the request of a set in this entry; undefined for any other. */
  part(id: string): Request | undefined {
    const request = this.request(id)
    return request && this.#parts.has(request) ? request : undefined
  }

  /**
   * Puts a set at the end of the queue. Then the caller must grant the requests whose turn it is. @param ttl its TTL if
   * this is its home, in milliseconds.
   */
  appendPart({ id, session, claims, label }: LockRequest, lease: number, ttl: number): void {
    const claim = claims.find(each => each.key === this.key)!
    const others = claims.filter(each => each !== claim)
    const home = homeOf(claims)
    const isHome = home === this.key
    const expires = isHome ? this.#now + ttl : Infinity
    const request: Request = {
      id,
      session,
      claims: [claim],
      phase: 'waiting',
      expires,
      lease,
      number: 0,
      label,
      since: this.#now,
    }
    this.#parts.set(request, { set: isHome ? { others, overwritten: [] } : { home }, expires })
    this.append(request)
  }

  /** Keeps a set that is not granted yet alive at its home. @param ttl in milliseconds. */
  keepPart(id: string, ttl: number): void {
    const request = this.part(id)
    if (!request) return
    const part = this.#parts.get(request)!
    if ('home' in part.set) return
    part.expires = Math.max(part.expires, this.#now + ttl)
    request.expires = part.expires
    this.isChanged = true
  }

  /** Takes back a grant that the box of a set has not used. @param ttl in milliseconds. */
  waitPart(id: string, ttl: number): void {
    const request = this.part(id)
    if (!request) return
    request.number = 0
    request.expires = this.#now + ttl
    this.changed(request)
  }

  /** Removes a set on behalf of its box. */
  withdraw(id: string): void {
    const request = this.part(id)
    if (!request) return
    this.#parts.delete(request)
    this.#left(id)
    this.remove(request)
  }

  /** Whether sets may wait in the waiting room for this key. */
  get isAwaited(): boolean {
    return this.#isAwaited
  }

  /** Records whether sets may wait in the waiting room for this key. */
  setAwaited(isAwaited: boolean): void {
    if (isAwaited === this.#isAwaited) return
    this.#isAwaited = isAwaited
    this.isChanged = true
  }

  /** Whether a set has ended here, so that it must not join the queue again. */
  hasEnded(id: string): boolean {
    return this.#ended.includes(id)
  }

  /** Ends a set that is not here. A change that was to bring it here fails, because the entry has changed. */
  end(id: string): void {
    this.#ended = [...this.#ended.filter(each => each !== id), id].slice(-MAX_ENDED)
    this.isChanged = true
  }

  /** The keys that were written without a lock since a set is in this queue, with the stamps of these writes. */
  overwritten(id: string): ReadonlyMap<string, number> {
    const set = this.#parts.get(this.request(id)!)?.set
    return new Map(set && 'others' in set ? set.overwritten : [])
  }

  /** Returns the other keys of a set whose home this is. */
  othersOf(id: string): readonly string[] {
    const request = this.part(id)
    const set = request && this.#parts.get(request)!.set
    return set && 'others' in set ? set.others.map(({ key }) => key) : []
  }

  /** Records that another key of a set is about to be written without a lock. */
  overwrite(id: string, key: string, stamp: number): void {
    const part = this.#parts.get(this.request(id)!)!
    if ('home' in part.set) return
    const { others, overwritten } = part.set
    part.set = { others, overwritten: [...overwritten.filter(([other]) => other !== key), [key, stamp]] }
    this.isChanged = true
  }

  /** Turns the claim of a set on this key into a shared one. If this is its home, also its claims on the other keys. */
  sharePart(id: string): void {
    const request = this.request(id)
    const part = request && this.#parts.get(request)
    if (!part) return
    const claim = { key: this.key, mode: 'shared' } as const
    request.claims = [claim]
    for (const entry of this.queue(this.key)!) if (entry.request === request) entry.claim = claim
    if ('others' in part.set) part.set = { ...part.set, others: sharedClaims(part.set.others) }
    this.isChanged = true
  }

  /** Returns the sets that hold this key or wait for it, and whose first key is another one. */
  pointers(): Pointer[] {
    return [...this.#parts].flatMap(([request, { set }]) => {
      const { id, session, phase } = request
      if (!('home' in set) || this.request(id) !== request) return []
      const since = this.#before.get(request)?.record.heartbeat ?? ''
      return [{ id, session, home: set.home, since, isHere: phase !== 'waiting' }]
    })
  }

  /** Returns the sets that hold this key, and whose first key is another one. */
  holders(): Pointer[] {
    return this.pointers().filter(({ isHere }) => isHere)
  }

  /** Whether a set is still here, since the same change. */
  hasPointer({ id, since }: Pointer): boolean {
    return this.pointers().some(each => each.id === id && each.since === since)
  }

  /** Keeps the commit of a set until it is applied to its other keys. */
  decide(decided: Decided): void {
    this.#decided = [...this.#decided, decided]
    this.isChanged = true
  }

  /** Removes a commit that is applied to all keys. */
  applied(id: string): void {
    if (!this.#decided.some(each => each.id === id)) return
    this.#decided = this.#decided.filter(each => each.id !== id)
    this.isChanged = true
  }

  /** Writes the effect of a set's commit on this key. */
  apply({ write, ids }: KeyChange): void {
    if (write) this.put(this.key, write.value, write.version)
    if (ids.length === 0) return
    this.isChanged = true
    this.#ids = [...live(this.#ids), ...ids]
    this.#stamp = Math.max(this.#stamp + 1, write?.version ?? 0)
  }

  /** Returns the changed entry, with this mark. */
  close(mark: Mark): KeyEntry {
    const { turn, marks } = this.#entry.locks
    return {
      stamp: this.#stamp,
      version: this.#version,
      ids: this.#ids,
      value: this.#value,
      locks: {
        turn: turn + 1,
        number: this.#number,
        marks: marked(marks, mark),
        requests: Array.from(this.requests(), request => this.#recordOf(request, textOfMark(mark))),
        ended: this.#ended,
        decided: this.#decided,
        isAwaited: this.#isAwaited,
      },
    }
  }

  /** Updates {@link isAwaited} when a set leaves this key. */
  #left(id: string): void {
    const isAwaited = this.#context.isAwaited(id, this.key)
    if (isAwaited === undefined) return
    // Others may wait for a set that is still here.
    const isLast = !Array.from(this.requests()).some(each => each.id !== id && this.#parts.has(each))
    this.#isAwaited = isAwaited || (this.#isAwaited && !isLast)
  }

  #isPointer(request: Request): boolean {
    const part = this.#parts.get(request)
    return part !== undefined && 'home' in part.set
  }

  #expiryOf(each: KeyRequest): number {
    const { sightings, grants } = this.#context
    const expires = sightings.expiry(each)
    const { id, session, sign, ttl } = each
    return sign === undefined ? expires : Math.max(expires, grants.renewedAt({ id, session, sign }) + ttl)
  }

  #recordOf(request: Request, mark: string): KeyRequest {
    const { id, session, phase, lease, number, label, since } = request
    const part = this.#parts.get(request)
    const expires = part ? part.expires : request.expires
    const before = this.#before.get(request)
    const isPointer = this.#isPointer(request)
    const isRenewed = !isPointer && (this.#renewed.has(request) || before?.expires !== expires)
    // Most requests only wait, and then their text is already known.
    if (phase === 'waiting' && before?.record.phase === phase && !part && !isRenewed) return before.record
    return {
      id,
      session,
      claim: request.claims[0]!,
      phase: part && phase !== 'waiting' && number === 0 ? 'here' : phase,
      ttl: isPointer ? 0 : isRenewed ? expires - this.#now : before!.record.ttl,
      heartbeat: isRenewed || !before ? mark : before.record.heartbeat,
      lease,
      number,
      label,
      since: before?.record.since ?? Date.now() - (this.#now - since),
      set: part?.set,
      sign: this.#covered.get(request) ?? (isRenewed ? undefined : before?.record.sign),
    }
  }
}

/** Returns the home of a set: its first key, whose entry decides about it. */
export function homeOf(claims: readonly Claim[]): string {
  return claims.reduce((least, { key }) => (key < least ? key : least), claims[0]!.key)
}

function live(ids: RecordedIds): RecordedIds {
  const now = Date.now()
  return ids.filter(([, until]) => until > now)
}
