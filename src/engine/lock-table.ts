import {
  CLAIM_WINDOW,
  WAITER_TTL,
  entryTtl,
  heartbeatWithin,
  type Enqueue,
  type ExtendOrYield,
  type Granted,
  type HolderReport,
  type Inspect,
  type LockOperation,
  type OutcomeOf,
  type WaitTerms,
  type CheckIn,
  type RequestReport,
  type RequestStatus,
} from './contract.js'
import { Ahead, type Claim } from './claim.js'

/** A request's place in the queue of one key. */
export interface Entry {
  readonly request: Request
  /** The request's claim on the key. */
  claim: Claim
}

/** A request for a claim set, from its enqueue to its release. */
export interface Request {
  readonly id: string
  readonly session: string
  claims: readonly Claim[]
  phase: 'waiting' | 'reserved' | 'held'
  /**
   * When it expires unless it checks in, in engine time, in milliseconds. A waiter that has expired is *silent*: it
   * blocks no other request, and keeps its place until one goes past it.
   */
  expires: number
  /** The lease that it asked for, in milliseconds. */
  lease: number
  /** The number of its grant, the upper part of the token; 0 before it is granted. */
  number: number
  readonly label: string | undefined
  /** When it entered the queues: engine time in milliseconds. */
  readonly since: number
}

/**
 * The storage of the table's state. The table owns the logic and this owns the storage, so that the same table runs on
 * variables and inside a database transaction. Only the table may change in place what is handed out, and it reports
 * each change by `changed`.
 */
export interface TableState {
  /**
   * The entries for a key in order of arrival; undefined when there are none. Reading the first few is cheap, and most
   * decisions need no more.
   */
  queue(key: string): Iterable<Entry> | undefined
  request(id: string): Request | undefined
  /** Puts a request at the end of the queue of each of its keys. */
  append(request: Request): void
  /** Takes a request out of all its queues and forgets it. */
  remove(request: Request): void
  /** The table has changed a request that was handed out, or one of its entries. */
  changed(request: Request): void
  /** The next number of a grant: greater than every earlier one, also after a crash. */
  nextNumber(): number
  requestsOf(session: string): Request[]
  /**
   * Whether a transaction to which an earlier grant of the key is bound is under way. Until it ends, the key is granted
   * to no other request. Undefined for an engine without such transactions.
   */
  isBound?(key: string): boolean
  /** All keys with requests that begin with `prefix`. */
  keys(prefix: string): string[]
  /** The process that a session belongs to, if it is known. */
  member(
    session: string,
  ): { readonly host: string; readonly pid: number; readonly label: string | undefined } | undefined
}

/** What another session is notified of after an operation. */
export interface Effect {
  readonly type: 'wake' | 'lost'
  readonly session: string
  readonly id: string
  /** One of its keys: serving that one serves all of them. */
  readonly key: string
}

/**
 * How much later a waiter checks in than the one before it, in milliseconds, so that a queue doesn't check in all at
 * once.
 */
export const LOOK_STAGGER = 50

/** How often a waiter checks in for the end of a transaction that an earlier grant is bound to, in milliseconds. */
const LOOK_FOR_END = 50

/** Number of requests at each end of a long queue that are named to those behind. */
const NAMED = 4

/**
 * The lock table: decides every lock operation, `(state, operation, now) -> (state, outcome, effects)`.
 *
 * It does no I/O and has no clock and no timers; `now` is the engine's time in milliseconds. The state is changed in
 * place. One rule grants everything: a request may run when, on each of its keys, it is compatible with every request
 * that arrived before it, holder or waiter. A claim set enters all its queues in one step, so the oldest request can
 * always run. Hence claims can't deadlock, no request overtakes another that it conflicts with, and a key whose head
 * waits for another key stays free.
 */
export class LockTable {
  readonly #state: TableState
  readonly #notify: (effect: Effect) => void

  /** @param notify takes the notifications for other sessions, to be sent once the operation is done. */
  constructor(state: TableState, notify: (effect: Effect) => void) {
    this.#state = state
    this.#notify = notify
  }

  /** Executes one operation at the engine's time `now`. */
  decide<O extends LockOperation>(operation: O, now: number): OutcomeOf<O>
  decide(operation: LockOperation, now: number): OutcomeOf<LockOperation> {
    switch (operation.type) {
      case 'enqueue':
        return this.#enqueue(operation, now)
      case 'checkIn':
        return this.#checkIn(operation, now)
      case 'cancel': {
        this.#cancel(operation.request.id, now)
        return
      }
      case 'renew':
        return this.#renew(operation, operation.lease, now)
      case 'release':
        return this.#release(operation, now)
      case 'extendOrYield':
        return this.#extendOrYield(operation, now)
      case 'downgrade':
        return this.#downgrade(operation, now)
      case 'forceRelease':
        return this.#forceRelease(operation.key, operation.number, now)
      case 'revoke':
        return this.#revoke(operation.session, now)
      case 'sweepExpired':
        this.#serve(operation.keys, now)
        return undefined
      case 'inspect':
        return this.#inspect(operation, now)
    }
  }

  /** The request of this grant, unless its lease is over. A guarded commit needs it. */
  holding({ request: { id }, number }: Granted, now: number): Request | undefined {
    const request = this.#state.request(id)
    // mutant: renew-expired
    return request?.phase === 'held' && request.number === number && now < request.expires
      ? request
      : undefined
  }

  #enqueue(operation: Enqueue, now: number): RequestStatus {
    const { id, session, claims, label } = operation.request
    const known = this.#state.request(id)
    if (known) return this.#standing(known, operation, now) // a repetition whose first answer was lost
    for (const claim of claims) {
      this.#serveKey(claim.key, now)
      const max = this.#liveMax(claim)
      if (max !== undefined) return { state: 'mismatch', key: claim.key, max }
    }
    const request: Request = {
      id,
      session,
      claims,
      phase: 'waiting',
      expires: now + entryTtl(operation),
      lease: operation.lease,
      number: 0,
      label,
      since: now,
    }
    // mutant: check-first-key-only
    const blocked = claims.some(claim => this.#blocked(claim, undefined, now))
    if (blocked && operation.wait === 0) return { state: 'busy' }
    // mutant: keep-overtaken-waiter
    if (!blocked) this.#goPast(claims, now)
    this.#state.append(request)
    return blocked ? this.#standing(request, operation, now) : this.#hold(request, now)
  }

  #checkIn(operation: CheckIn, now: number): RequestStatus {
    const request = this.#state.request(operation.request.id)
    if (!request) return { state: 'gone' }
    if (request.phase === 'held' && now >= request.expires) {
      // Its holder counts it as lost by now, so a late renewal must not revive it.
      this.#drop(request, now)
      return { state: 'gone' }
    }
    request.lease = operation.lease
    // A reservation past its window, or an entry past its life, is still good if no other request has needed its place.
    request.expires = now + (request.phase === 'held' ? operation.lease : entryTtl(operation))
    this.#state.changed(request)
    if (request.phase === 'waiting') this.#serveKeysOf(request, now)
    // This call also claims what it has just reserved. A grant keeps its number.
    return request.phase === 'reserved' && !this.#isBound(request)
      ? this.#hold(request, now)
      : this.#standing(request, operation, now)
  }

  #cancel(id: string, now: number): undefined {
    const request = this.#state.request(id)
    // mutant: cancel-keeps-waiter
    if (!request) return
    this.#state.remove(request)
    this.#serveKeysOf(request, now)
  }

  #renew(grant: Granted, lease: number, now: number): boolean {
    const request = this.holding(grant, now)
    if (!request) return false
    request.lease = lease
    request.expires = now + lease
    this.#state.changed(request)
    return true
  }

  #release({ request: { id }, number }: Granted, now: number): boolean {
    const request = this.#state.request(id)
    // mutant: release-any-number
    if (request?.phase !== 'held' || request.number !== number) return false
    this.#state.remove(request)
    // mutant: release-wakes-nobody
    this.#serveKeysOf(request, now)
    return now < request.expires
  }

  #extendOrYield(operation: ExtendOrYield, now: number): RequestStatus {
    const request = this.holding(operation, now)
    if (!request) {
      const next = this.#state.request(operation.next.id)
      return next ? this.#standing(next, operation, now) : { state: 'gone' }
    }
    // mutant: extend-despite-waiters
    const wanted = this.#isBound(request) || request.claims.some(claim => this.#awaited(claim.key, now))
    if (!wanted) {
      request.lease = operation.lease
      return this.#hold(request, now)
    }
    this.#state.remove(request)
    this.#serveKeysOf(request, now)
    const { next, lease, wait } = operation
    return this.#enqueue({ type: 'enqueue', request: next, lease, wait }, now)
  }

  /** Whether the request can't be granted yet, because a transaction is bound to an earlier grant of its keys. */
  #isBound({ claims }: Request): boolean {
    return claims.some(({ key }) => this.#state.isBound?.(key))
  }

  /** Whether the key has a waiter that is not silent. */
  #awaited(key: string, now: number): boolean {
    for (const { request } of this.#state.queue(key)!) {
      if (request.phase === 'waiting' && now < request.expires) return true
    }
    return false
  }

  #downgrade(grant: Granted, now: number): boolean {
    const request = this.holding(grant, now)
    if (!request) return false
    request.claims = request.claims.map(({ key }) => {
      const entry = [...this.#state.queue(key)!].find(other => other.request === request)!
      entry.claim = { key, mode: 'shared' }
      return entry.claim
    })
    this.#state.changed(request)
    this.#serveKeysOf(request, now)
    return true
  }

  #forceRelease(key: string, number: number, now: number): boolean {
    const entry = [...(this.#state.queue(key) ?? [])].find(
      // mutant: force-release-any-number
      ({ request }) => request.phase === 'held' && request.number === number,
    )
    if (!entry) return false
    this.#drop(entry.request, now)
    return true
  }

  #revoke(session: string, now: number): number {
    const requests = this.#state.requestsOf(session)
    // All are taken out before any waiter is served, else one request of the dead session could get another's keys.
    // mutant: revoke-keeps-grants
    for (const request of requests) this.#remove(request)
    this.#serve(requests.flatMap(keysOf), now)
    return requests.length
  }

  #inspect({ prefix, exact = false }: Inspect, now: number): RequestReport[] {
    const keys = exact ? [prefix] : this.#state.keys(prefix)
    return keys.flatMap(key => {
      // Requests that have expired stay until another request needs their place, but they hold nothing.
      const live = [...(this.#state.queue(key) ?? [])].filter(({ request }) => now < request.expires)
      return live.map(({ request, claim }) => {
        const { session, label, phase, number } = request
        const member = this.#state.member(session)
        return {
          key,
          session,
          host: member?.host ?? '',
          pid: member?.pid ?? 0,
          label: label ?? member?.label,
          claim,
          phase,
          number,
          age: now - request.since,
          expiresIn: request.expires - now,
        }
      })
    })
  }

  #hold(request: Request, now: number): RequestStatus & { state: 'held' } {
    request.phase = 'held'
    request.expires = now + request.lease
    request.number = this.#state.nextNumber()
    this.#state.changed(request)
    return { state: 'held', id: request.id, number: request.number }
  }

  /** Drops what has expired at the front of these queues, and reserves the keys for all waiters that can run now. */
  #serve(keys: readonly string[], now: number): void {
    for (const key of keys) this.#serveKey(key, now)
  }

  #serveKeysOf(request: Request, now: number): void {
    for (const claim of request.claims) this.#serveKey(claim.key, now)
  }

  #serveKey(key: string, now: number): void {
    for (let expired = this.#serveOne(key, now); expired; expired = this.#serveOne(key, now))
      this.#drop(expired, now)
  }

  /** Serves one queue from its front; ends early with a request that is over, which must be dropped first. */
  #serveOne(key: string, now: number): Request | undefined {
    const queue = this.#state.queue(key)
    if (!queue) return undefined
    const ahead = new Ahead()
    for (const { request, claim } of queue) {
      // mutant: keep-expired
      if (isOver(request, now)) return request
      if (isSilent(request, now)) continue
      if (!ahead.admits(claim)) return undefined // a request that is blocked here blocks all behind it
      if (
        request.phase === 'waiting' &&
        // mutant: reserve-first-key-only
        request.claims.every(other => !this.#blocked(other, request, now))
      ) {
        const passed = this.#firstSilent(request.claims, request, now)
        // mutant: keep-passed-waiter
        if (passed) return passed
        request.phase = 'reserved'
        request.expires = now + CLAIM_WINDOW
        this.#state.changed(request)
        this.#notifyOwner('wake', request)
      }
      ahead.add(claim)
    }
    return undefined
  }

  /** Whether a claim has to wait for a request that is before `request`, or before the end of the queue. */
  #blocked(claim: Claim, request: Request | undefined, now: number): boolean {
    if (this.#state.isBound?.(claim.key)) return true
    const queue = this.#state.queue(claim.key)
    if (!queue) return false
    const ahead = new Ahead()
    for (const other of queue) {
      if (other.request === request) return false
      if (isSilent(other.request, now)) continue
      // mutant: overtake-waiters
      ahead.add(other.claim)
      if (!ahead.admits(claim)) return true
    }
    return false
  }

  /** Drops the silent waiters of these queues: a waiter that came back would not see what was granted behind it. */
  #goPast(claims: readonly Claim[], now: number): void {
    let silent = this.#firstSilent(claims, undefined, now)
    for (; silent; silent = this.#firstSilent(claims, undefined, now)) this.#drop(silent, now)
  }

  /** The first silent waiter before `request`, or before the end of the queues. */
  #firstSilent(claims: readonly Claim[], request: Request | undefined, now: number): Request | undefined {
    for (const { key } of claims) {
      for (const other of this.#state.queue(key) ?? []) {
        if (other.request === request) break
        if (isSilent(other.request, now)) return other.request
      }
    }
    return undefined
  }

  #drop(request: Request, now: number): void {
    this.#remove(request)
    this.#serveKeysOf(request, now)
  }

  #remove(request: Request): void {
    this.#state.remove(request)
    this.#notifyOwner('lost', request)
  }

  #notifyOwner(type: Effect['type'], request: Request): void {
    this.#notify({ type, session: request.session, id: request.id, key: request.claims[0]!.key })
  }

  #standing(request: Request, terms: WaitTerms, now: number): RequestStatus {
    if (request.phase === 'held') return { state: 'held', id: request.id, number: request.number }
    let next = Infinity
    let holder: Request | undefined
    // No request ever enters before it, so no other session's death can matter to it later.
    const behind = new Set<string>()
    let leavesOut = false
    for (const { key } of request.claims) {
      let inFront = 0
      let queued = false
      const before = this.#before(request, key)
      const isFirst = !before.some(({ phase }) => phase === 'waiting')
      for (const [index, other] of before.entries()) {
        if (isFirst || index < NAMED || index >= before.length - NAMED) behind.add(other.session)
        else leavesOut = true
        if (other.phase === 'held') holder ??= other
        if (isSilent(other, now)) continue
        queued ||= inFront++ > 0 && other.phase === 'waiting'
        // Several requests may hold the key, and the end of any of them may make room.
        if (!queued) next = Math.min(next, other.expires - now)
      }
    }
    let place = 0
    for (const entry of this.#state.queue(request.claims[0]!.key)!) {
      if (entry.request === request) break
      place++
    }
    const soonest = Math.min(next + place * LOOK_STAGGER, heartbeatWithin(terms))
    const granting = request.phase === 'reserved' ? 0 : soonest
    const lookAgain = this.#isBound(request) ? LOOK_FOR_END : granting
    return {
      state: 'queued',
      id: request.id,
      place,
      lookAgain: Math.max(lookAgain, 0),
      behind: [...behind],
      ...(leavesOut && { leavesOut }),
      holder: holder && this.#holderReport(holder, now),
    }
  }

  /** The requests before this one in the queue of a key. */
  #before(request: Request, key: string): Request[] {
    const before: Request[] = []
    for (const { request: other } of this.#state.queue(key)!) {
      if (other === request) break
      before.push(other)
    }
    return before
  }

  /** Undefined where its process is not known. */
  #holderReport({ session, label, since }: Request, now: number): HolderReport | undefined {
    const member = this.#state.member(session)
    if (!member) return undefined
    return { session, host: member.host, pid: member.pid, label: label ?? member.label, age: now - since }
  }

  /** The number of permits that the key is in use with, when the claim names another one. */
  #liveMax(claim: Claim): number | undefined {
    if (claim.mode !== 'permits') return undefined
    for (const { claim: other } of this.#state.queue(claim.key) ?? []) {
      if (other.mode === 'permits' && other.max !== claim.max) return other.max
    }
    return undefined
  }
}

/** Whether a waiter has not checked in for the lifetime of its entry. */
function isSilent({ phase, expires }: Request, now: number): boolean {
  // mutant: silent-waiter-blocks
  return phase === 'waiting' && now >= expires
}

/** Whether a request must be dropped as soon as it is found. */
function isOver({ phase, expires, lease }: Request, now: number): boolean {
  // In an outage no waiter can check in. Waiters that try again within this time keep their order.
  return now >= expires + (phase === 'waiting' ? Math.max(lease - WAITER_TTL, 0) : 0)
}

function keysOf(request: Request): string[] {
  return request.claims.map(claim => claim.key)
}
