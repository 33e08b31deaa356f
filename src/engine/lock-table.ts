import type {
  Alive,
  Enqueue,
  ExtendOrYield,
  Granted,
  HolderReport,
  Inspect,
  LockOperation,
  OutcomeOf,
  CheckIn,
  RequestReport,
  RequestStatus,
  SignOutcome,
} from './contract.js'
import { BOUND_CHECK_INTERVAL, CLAIM_WINDOW, WAITER_TTL, coverTtl, entryTtl } from './wait-times.js'
import { Ahead, type Claim } from './claim.js'
import type { Effect, Request, TableState } from './table-state.js'

/** Number of requests at each end of a long queue whose sessions are reported to those behind. */
const REPORTED_ENDS = 4

/**
 * The lock table: decides every lock operation, `(state, operation, now) -> (state, outcome, effects)`.
 *
 * It does no I/O and has no clock and no timers; `now` is the engine's time in milliseconds. It changes the state in
 * place. One rule decides all grants except `steal`: a request can be granted when, on each of its keys, it is
 * compatible with every request that arrived before it, holder or waiter. Silent waiters do not count, and a key
 * with a grant that is bound to a transaction is granted to no other request. A request enters all its queues in one step, so
 * the oldest request waits for no other. Hence claims can't deadlock, no request overtakes another that it conflicts
 * with, and a free key whose first waiter waits for another key stays free.
 */
export class LockTable {
  readonly #state: TableState
  readonly #notify: (effect: Effect) => void

  /** @param notify takes the hints for other sessions, to be sent after the operation. */
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
      case 'alive':
        return this.#alive(operation, now)
      case 'cancel':
        this.#cancel(operation.request.id, now)
        return undefined
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

  /** The request of this grant, if it is held and its lease has not expired. */
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
    if (known) return this.#status(known, now) // a repetition, because the first answer was lost
    for (const claim of claims) {
      this.#serve([claim.key], now)
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
    if (operation.steal) return this.#steal(request, now)
    // mutant: check-first-key-only
    const blocked = claims.some(claim => this.#blocked(claim, undefined, now))
    if (blocked && operation.wait === 0) return { state: 'busy' }
    // mutant: keep-overtaken-waiter
    if (!blocked) this.#dropSilent(claims, now)
    this.#state.append(request)
    return blocked ? this.#status(request, now) : this.#hold(request, now)
  }

  /** Grants a request before all that waits for its keys, and takes them from their holders. */
  #steal(request: Request, now: number): RequestStatus {
    const others = new Set(
      request.claims.flatMap(({ key }) => [...(this.#state.queue(key) ?? [])].map(entry => entry.request)),
    )
    const held = [...others].filter(({ phase }) => phase === 'held')
    for (const other of held) this.#remove(other)
    for (const other of others) {
      if (other.phase !== 'reserved') continue
      other.phase = 'waiting'
      other.expires = now + coverTtl(other.lease)
      other.isCovered = false
      this.#state.changed(other)
    }
    this.#state.prepend!(request)
    const status = this.#hold(request, now)
    // Grants that were taken away may have had other keys, too.
    this.#serve(held.flatMap(keysOf), now)
    return status
  }

  #checkIn(operation: CheckIn, now: number): RequestStatus {
    const request = this.#state.request(operation.request.id)
    if (!request) return { state: 'gone' }
    if (request.phase === 'held' && now >= request.expires) {
      // Its holder regards it as lost, so a late renewal must not revive it.
      this.#drop(request, now)
      return { state: 'gone' }
    }
    request.lease = operation.lease
    // A request whose claim window or TTL has passed is still valid if no other request was granted past it.
    request.expires = now + (request.phase === 'held' ? operation.lease : entryTtl(operation))
    this.#state.changed(request)
    if (request.phase === 'waiting') this.#serve(keysOf(request), now)
    // The same call also claims keys that it has just reserved. A request that is granted already keeps its number.
    return request.phase === 'reserved' && !this.#isBound(request)
      ? this.#hold(request, now)
      : this.#status(request, now)
  }

  /** Reads the named requests, and each queue up to its first waiter. */
  #alive({ session, requests }: Alive, now: number): SignOutcome {
    const named = new Set(requests.map(({ id }) => id))
    this.#state.see(session, now)
    // mutant: sign-without-names
    for (const id of named) this.#cover(id)
    const keys = [...new Set(requests.flatMap(keysOf))]
    // mutant: sign-serves-nothing
    this.#serve(keys, now)
    const due = [...named].filter(id => this.#state.request(id)?.phase !== 'waiting')
    return { due, next: Math.min(...keys.map(key => this.#nextOf(named, key, now))) }
  }

  #cover(id: string): void {
    const request = this.#state.request(id)
    if (request?.phase !== 'waiting' || request.isCovered) return
    request.isCovered = true
    this.#state.changed(request)
  }

  /** Time until the next expiry ahead of a named request that is the first waiter for the key. */
  #nextOf(named: ReadonlySet<string>, key: string, now: number): number {
    let next = Infinity
    for (const { request } of this.#state.queue(key) ?? []) {
      if (request.phase !== 'waiting') next = Math.min(next, request.expires - now)
      else if (named.has(request.id)) return this.#isBound(request) ? BOUND_CHECK_INTERVAL : next
      // The others are behind it.
      else if (!this.#isSilent(request, now)) break
    }
    return Infinity
  }

  #cancel(id: string, now: number): void {
    const request = this.#state.request(id)
    // mutant: cancel-keeps-waiter
    if (!request) return
    this.#state.remove(request)
    this.#serve(keysOf(request), now)
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
    this.#serve(keysOf(request), now)
    return now < request.expires
  }

  #extendOrYield(operation: ExtendOrYield, now: number): RequestStatus {
    const request = this.holding(operation, now)
    if (!request) {
      const next = this.#state.request(operation.next.id)
      return next ? this.#status(next, now) : { state: 'gone' }
    }
    // mutant: extend-despite-waiters
    const wanted = this.#isBound(request) || request.claims.some(claim => this.#awaited(claim.key, now))
    if (!wanted) {
      request.lease = operation.lease
      return this.#hold(request, now)
    }
    this.#state.remove(request)
    this.#serve(keysOf(request), now)
    const { next, lease, wait } = operation
    return this.#enqueue({ type: 'enqueue', request: next, lease, wait }, now)
  }

  /** Whether the request can't be granted yet, because an earlier grant of its keys is bound to a transaction. */
  #isBound({ claims }: Request): boolean {
    return claims.some(({ key }) => this.#state.isBound?.(key))
  }

  /** Whether the key has a waiter that is not silent. */
  #awaited(key: string, now: number): boolean {
    for (const { request } of this.#state.queue(key)!) {
      if (request.phase === 'waiting' && !this.#isSilent(request, now)) return true
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
    this.#serve(keysOf(request), now)
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
    // All are removed before any waiter is served; otherwise one request of the dead session could get another's keys.
    // mutant: revoke-keeps-grants
    for (const request of requests) this.#remove(request)
    this.#serve(requests.flatMap(keysOf), now)
    return requests.length
  }

  #inspect({ prefix, exact = false }: Inspect, now: number): RequestReport[] {
    const keys = exact ? [prefix] : this.#state.keys(prefix)
    return keys.flatMap(key => {
      // Expired requests stay in the queue until they are dropped, but they hold nothing.
      const live = [...(this.#state.queue(key) ?? [])].filter(({ request }) => now < this.#expiry(request))
      return live.map(({ request, claim }) => {
        const { phase, number } = request
        const expiresIn = this.#expiry(request) - now
        return { key, claim, phase, number, expiresIn, ...this.#owner(request, now) }
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

  /** Drops expired requests at the front of these queues, and reserves the keys for all waiters that can be granted. */
  #serve(keys: readonly string[], now: number): void {
    // No recursion, because thousands of requests of a dead process expire together.
    const left = keys.toReversed()
    for (let key = left.at(-1); key !== undefined; key = left.at(-1)) {
      const expired = this.#serveOne(key, now)
      if (!expired) {
        left.pop()
        continue
      }
      this.#remove(expired)
      for (const other of keysOf(expired).reverse()) if (other !== key) left.push(other)
    }
  }

  /**
   * Serves one queue from its front: O(requests up to the first that stays blocked), if they have no other key. Returns
   * early with a request that must be dropped first.
   */
  #serveOne(key: string, now: number): Request | undefined {
    const queue = this.#state.queue(key)
    if (!queue) return undefined
    const ahead = new Ahead()
    const isBound = this.#state.isBound?.(key) ?? false
    let passed: Request | undefined
    for (const { request, claim } of queue) {
      // mutant: keep-expired
      if (this.#mustBeDropped(request, now)) return request
      if (this.#isSilent(request, now)) {
        passed ??= request
        continue
      }
      if (!ahead.admits(claim)) return undefined // a request that is blocked here blocks all behind it
      if (
        request.phase === 'waiting' &&
        // mutant: reserve-first-key-only
        request.claims.every(other => (other.key === key ? !isBound : !this.#blocked(other, request, now)))
      ) {
        if (request.claims.length > 1) passed ??= this.#firstSilent(request.claims, request, now)
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

  /** Whether a claim has to wait for a request ahead of `request`; if that is undefined, for any in the queue. */
  #blocked(claim: Claim, request: Request | undefined, now: number): boolean {
    if (this.#state.isBound?.(claim.key)) return true
    const queue = this.#state.queue(claim.key)
    if (!queue) return false
    const ahead = new Ahead()
    for (const other of queue) {
      if (other.request === request) return false
      if (this.#isSilent(other.request, now)) continue
      // mutant: overtake-waiters
      ahead.add(other.claim)
      if (!ahead.admits(claim)) return true
    }
    return false
  }

  /** Drops the silent waiters of these queues. A waiter that came back would not know of a grant past it. */
  #dropSilent(claims: readonly Claim[], now: number): void {
    let silent = this.#firstSilent(claims, undefined, now)
    for (; silent; silent = this.#firstSilent(claims, undefined, now)) this.#drop(silent, now)
  }

  /** The first silent waiter ahead of `request`, or in the queues if that is undefined. */
  #firstSilent(claims: readonly Claim[], request: Request | undefined, now: number): Request | undefined {
    for (const { key } of claims) {
      for (const other of this.#state.queue(key) ?? []) {
        if (other.request === request) break
        if (this.#isSilent(other.request, now)) return other.request
      }
    }
    return undefined
  }

  #drop(request: Request, now: number): void {
    this.#remove(request)
    this.#serve(keysOf(request), now)
  }

  #remove(request: Request): void {
    this.#state.remove(request)
    this.#notifyOwner('lost', request)
  }

  #notifyOwner(type: Effect['type'], request: Request): void {
    this.#notify({ type, session: request.session, id: request.id, key: request.claims[0]!.key })
  }

  #status(request: Request, now: number): RequestStatus {
    if (request.phase === 'held') return { state: 'held', id: request.id, number: request.number }
    let next = Infinity
    let holder: Request | undefined
    let place = 0
    // Only a request that steals ever enters ahead of it, and the next check-in names its session.
    const sessionsAhead = new Set<string>()
    for (const [index, { key }] of request.claims.entries()) {
      const { front, isFirst } = this.#ahead(request, key, now)
      if (index === 0) place = front.length
      const reported = isFirst
        ? front
        : [...front.slice(0, REPORTED_ENDS), ...this.#state.lastAhead(request, key, REPORTED_ENDS)]
      for (const { session } of reported) sessionsAhead.add(session)
      for (const other of front) {
        if (other.phase === 'held') holder ??= other
        // Several requests may hold the key, and the end of any of them may let this one in.
        if (isFirst && other.phase !== 'waiting') next = Math.min(next, other.expires - now)
      }
    }
    const granting = request.phase === 'reserved' ? 0 : next
    const checkInAfter = this.#isBound(request) ? BOUND_CHECK_INTERVAL : granting
    return {
      state: 'queued',
      id: request.id,
      place,
      checkInAfter: Math.max(checkInAfter, 0),
      sessionsAhead: [...sessionsAhead],
      holder: holder && this.#state.member(holder.session) ? this.#owner(holder, now) : undefined,
    }
  }

  /**
   * The requests ahead of this one in the queue of a key; only the first ones if they are many, and one of them waits.
   */
  #ahead(request: Request, key: string, now: number): { front: readonly Request[]; isFirst: boolean } {
    const front: Request[] = []
    let isFirst = true
    for (const { request: other } of this.#state.queue(key)!) {
      if (other === request) break
      front.push(other)
      isFirst &&= other.phase !== 'waiting' || this.#isSilent(other, now)
      // Those behind them would have to be read.
      if (!isFirst && front.length >= REPORTED_ENDS) break
    }
    return { front, isFirst }
  }

  /** The session of a request with its process, and the age of the request. */
  #owner({ session, label, since }: Request, now: number): HolderReport {
    const member = this.#state.member(session)
    const { host = '', pid = 0 } = member ?? {}
    return { session, host, pid, label: label ?? member?.label, age: now - since }
  }

  /** When a request expires: a waiter that is covered lives as long as its session sends signs. */
  #expiry({ phase, expires, isCovered, lease, session }: Request): number {
    if (phase !== 'waiting' || !isCovered) return expires
    return Math.max(expires, this.#state.seen(session) + coverTtl(lease))
  }

  /** Whether a waiter has neither checked in nor been covered by a sign within its TTL. */
  #isSilent(request: Request, now: number): boolean {
    // mutant: silent-waiter-blocks
    return request.phase === 'waiting' && now >= request.expires && now >= this.#expiry(request)
  }

  /** Whether a request has expired, and keeps no place in the queue either. */
  #mustBeDropped(request: Request, now: number): boolean {
    // In an outage no box sends anything. Waiters whose box reaches the engine within this time keep their order.
    const kept = request.phase === 'waiting' ? Math.max(request.lease - WAITER_TTL, 0) : 0
    return now >= request.expires + kept && now >= this.#expiry(request) + kept
  }

  /** The `max` with which the key is in use, if the claim has another one. */
  #liveMax(claim: Claim): number | undefined {
    if (claim.mode !== 'permits') return undefined
    for (const { claim: other } of this.#state.queue(claim.key) ?? []) {
      // All that are in a queue have the same.
      if (other.mode === 'permits') return other.max === claim.max ? undefined : other.max
    }
    return undefined
  }
}

function keysOf({ claims }: Pick<Request, 'claims'>): string[] {
  return claims.map(({ key }) => key)
}
