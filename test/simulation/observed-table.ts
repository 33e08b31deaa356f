import type {
  Alive,
  CheckIn,
  Commit,
  CommitOutcome,
  Enqueue,
  ExtendOrYield,
  Operation,
  RequestStatus,
  SignOutcome,
} from '../../src/engine/contract.js'
import { CLAIM_WINDOW, WAITER_TTL, coverTtl, entryTtl, heartbeatWithin } from '../../src/engine/wait-times.js'
import type { Claim } from '../../src/engine/claim.js'
import { longestDelay, type Climate } from './climate.js'
import type { Broken, History } from './history.js'
import type { SimulatedProcess } from './process.js'
import type { Hint } from './server.js'
import type { Timeline } from './timeline.js'

/** A request as its operations, outcomes and hints show it. Times are those of the server. */
export interface Observed {
  readonly id: string
  readonly session: string
  claims: readonly Claim[]
  phase: 'waiting' | 'reserved' | 'held'
  expires: number
  lease: number
  /** 0 until the request is granted. */
  number: number
  /** Whether a sign of its session has named it. */
  isCovered: boolean
  /** Time of its last operation, or of the last sign that named it. */
  seenAt: number
  /** Lifetime of its entry without operations, and the maximum time until its next operation. */
  life: number
  look: number
  /** Time at which the last request before it left or expired. */
  clearedAt: number
  /** Time at which its process received a hint of its reservation. */
  wokenAt: number | undefined
  /** The session whose operation reserved its keys. That session must check the keys after the claim window. */
  reservedBy: string | undefined
}

/** A grant that the server has given. */
export interface GrantRecord {
  readonly request: Observed
  /** Position among all grants, in the order in which the server gave them. */
  readonly place: number
  expires: number
  /** Whether an operator took the grant away. Its holder may not know yet. */
  overridden: boolean
}

/** Additional time until a waiter has checked in again, for timers and the shortest check-in, in milliseconds. */
const SLACK = 10
/** Time from the end of a claim window until the reserving session checks, as a fraction of the window. */
const WINDOW_LOOK = 0.1

/**
 * Follows the lock table from outside, through operations, outcomes and hints. It checks each step against the
 * promises: exclusion, increasing numbers, order of arrival, all or nothing, the right wake-ups, and that no session
 * affects the grant of another.
 */
export class ObservedTable {
  readonly grants = new Map<number, GrantRecord>()
  readonly #history: History
  readonly #climate: Climate
  readonly #processOf: (session: string) => SimulatedProcess | undefined
  readonly #onGrant: (request: Observed) => void
  readonly #requests = new Map<string, Observed>()
  readonly #queues = new Map<string, Observed[]>()
  readonly #highest = new Map<string, number>()
  /** Time of the last sign of each session. */
  readonly #seen = new Map<string, number>()
  /** The requests that the last sign of each session named, and the due time of the next sign. */
  readonly #signs = new Map<string, { readonly named: ReadonlySet<string>; readonly next: number }>()
  /** Keys whose queues the current operation has changed. The operation must serve them. */
  readonly #touched = new Set<string>()
  readonly #timeline: Timeline
  readonly #offset: number
  #operation: Operation | undefined
  #session = ''

  /** @param offset offset of the server's clock, in milliseconds */
  constructor(
    timeline: Timeline,
    offset: number,
    history: History,
    climate: Climate,
    processOf: (session: string) => SimulatedProcess | undefined,
    onGrant: (request: Observed) => void,
  ) {
    this.#timeline = timeline
    this.#offset = offset
    this.#history = history
    this.#climate = climate
    this.#processOf = processOf
    this.#onGrant = onGrant
  }

  /** Whether another session waits for one of the keys of a request. */
  awaited(request: Observed): boolean {
    return request.claims.some(({ key }) =>
      this.#queue(key).some(
        other =>
          other.phase === 'waiting' && other.session !== request.session && this.#now < this.#expiry(other),
      ),
    )
  }

  /** Returns the requests that hold, according to the server. */
  holders(): Observed[] {
    return [...this.#requests.values()].filter(({ phase }) => phase === 'held')
  }

  /** Returns one of the keys of a request. */
  keyOf(id: string): string | undefined {
    return this.#requests.get(id)?.claims[0]!.key
  }

  /** Records that a hint of its reservation has reached the process of a request. */
  woken(id: string): void {
    const request = this.#requests.get(id)
    if (request?.phase === 'reserved') request.wokenAt ??= this.#now
  }

  /**
   * Returns the time at which a grant expires without a further renewal, in common time; undefined for an unknown
   * number.
   */
  expiry(number: number): number | undefined {
    const record = this.grants.get(number)
    return record && record.expires - this.#offset
  }

  applied(session: string, operation: Operation, outcome: unknown, hints: readonly Hint[]): void {
    this.#operation = operation
    this.#session = session
    this.#touched.clear()
    switch (operation.type) {
      case 'enqueue':
        this.#enqueued(operation, outcome as RequestStatus, hints)
        break
      case 'checkIn':
        this.#checkedIn(operation, outcome as RequestStatus, hints)
        break
      case 'alive':
        this.#signed(operation, outcome as SignOutcome, hints)
        break
      case 'cancel':
        this.#cancelled(operation.request.id)
        this.#hinted(hints)
        break
      case 'renew':
        this.#renewed(operation.request.id, operation.number, operation.lease, outcome as boolean)
        this.#hinted(hints)
        break
      case 'release':
        this.#released(operation.request.id, operation.number, outcome as boolean)
        this.#hinted(hints)
        break
      case 'extendOrYield':
        this.#extendedOrYielded(session, operation, outcome as RequestStatus, hints)
        break
      case 'downgrade':
        this.#downgraded(operation.request.id, operation.number, outcome as boolean)
        this.#hinted(hints)
        break
      case 'forceRelease':
        this.#forceReleased(operation.key, operation.number, outcome as boolean, hints)
        break
      case 'revoke':
        this.#revoked(operation.session, outcome as number, hints)
        break
      case 'sweepExpired':
        for (const key of operation.keys) this.#touched.add(key)
        this.#hinted(hints)
        break
      case 'commit':
        this.#committed(operation, outcome as CommitOutcome)
        this.#hinted(hints)
        break
      default:
        this.#hinted(hints)
    }
    this.#checkServed()
  }

  #enqueued(operation: Enqueue, outcome: RequestStatus, hints: readonly Hint[]): void {
    const known = this.#requests.get(operation.request.id)
    this.#hinted(hints)
    if (known) return
    if (outcome.state === 'mismatch') {
      const live = this.#queue(outcome.key).some(one => maxOf(one, outcome.key) === outcome.max)
      if (!live)
        this.#broken('P10', `${operation.request.id} is refused for permits that no request has named`)
      return
    }
    for (const { key } of operation.request.claims) this.#touched.add(key)
    const before = operation.request.claims
      .map(claim => this.#before(claim, undefined))
      .find(one => one !== undefined)
    switch (outcome.state) {
      case 'busy':
        if (operation.wait) this.#broken('P4', `${operation.request.id} wants to wait and may not`)
        if (!before)
          this.#broken('P5', `${operation.request.id} is answered busy, and no request is before it`)
        return
      case 'queued':
        if (operation.wait === 0)
          this.#broken('P8', `${operation.request.id} does not want to wait and is queued`)
        if (!before) this.#broken('P5', `${operation.request.id} has to wait, and no request is before it`)
        this.#append(operation)
        return
      case 'held':
        this.#granted(this.#append(operation), outcome)
        return
      case 'gone':
        this.#broken('P8', `${operation.request.id} is gone at its enqueue`)
    }
  }

  #checkedIn(operation: CheckIn, outcome: RequestStatus, hints: readonly Hint[]): void {
    const request = this.#requests.get(operation.request.id)
    const over = request?.phase === 'held' && this.#now >= request.expires
    // The last answer set the time of this check-in. The answer to this check-in sets the time of the next one.
    const look = request?.look
    if (request && !over) {
      request.lease = operation.lease
      request.life = entryTtl(operation)
      request.look = heartbeatWithin(operation)
      request.expires = this.#now + (request.phase === 'held' ? operation.lease : request.life)
      request.seenAt = this.#now
      if (request.phase === 'waiting') this.#touch(request)
    }
    this.#hinted(hints)
    if (!request || over) {
      if (outcome.state !== 'gone')
        this.#broken('P7', `${operation.request.id} is over and still ${outcome.state}`)
      return
    }
    switch (outcome.state) {
      case 'held':
        if (request.phase !== 'held') {
          this.#checkStall(request, look!)
          this.#granted(request, outcome)
        } else if (outcome.number !== request.number)
          this.#broken('P2', `${request.id} was granted with another number before`)
        else this.grants.get(request.number)!.expires = request.expires
        return
      case 'queued':
        if (request.phase !== 'waiting')
          this.#broken('P5', `${request.id} is ${request.phase} and told to wait`)
        return
      default:
        this.#broken('P7', `${request.id} is ${request.phase} and told ${outcome.state}`)
    }
  }

  #signed({ session, requests }: Alive, { due, next }: SignOutcome, hints: readonly Hint[]): void {
    this.#seen.set(session, this.#now)
    this.#checkSign(session, new Set(requests.map(({ id }) => id)), next)
    for (const { id, claims } of requests) {
      for (const { key } of claims) this.#touched.add(key)
      const request = this.#requests.get(id)
      if (request?.phase !== 'waiting') continue
      request.isCovered = true
      request.life = coverTtl(request.lease)
      request.look = heartbeatWithin({ lease: request.lease, wait: Infinity })
      request.seenAt = this.#now
    }
    this.#hinted(hints)
    for (const { id } of requests) {
      const isWaiting = this.#requests.get(id)?.phase === 'waiting'
      if (due.includes(id) === isWaiting)
        this.#broken('P5', `${id} waits: ${isWaiting}, but its sign of life says otherwise`)
    }
  }

  /**
   * Checks that a session with waiting requests sends its next sign in time, as the outcome of the last sign demanded.
   */
  #checkSign(session: string, named: ReadonlySet<string>, next: number): void {
    const last = this.#signs.get(session)
    this.#signs.set(session, { named, next: this.#now + next })
    const troubled = this.#troubledUntil({ session })
    const waits = last !== undefined && [...named].some(id => last.named.has(id))
    if (
      waits &&
      troubled !== undefined &&
      this.#now - Math.max(last.next, troubled) > 3 * longestDelay(this.#climate) + SLACK
    )
      this.#broken('P9', `${session} sends a sign ${this.#now - last.next} ms after a request has expired`)
  }

  #cancelled(id: string): void {
    const request = this.#requests.get(id)
    if (request) this.#remove(request)
  }

  #renewed(id: string, number: number, lease: number, outcome: boolean): void {
    const request = this.#holding(id, number)
    if (outcome !== (request !== undefined)) {
      this.#broken(
        'P7',
        outcome ? `${id} was renewed and not held` : `${id} is held and could not be renewed`,
      )
    }
    if (!request) return
    request.lease = lease
    request.expires = this.#now + lease
    request.seenAt = this.#now
    this.grants.get(number)!.expires = request.expires
  }

  #released(id: string, number: number, outcome: boolean): void {
    const held = this.#holding(id, number) !== undefined
    const request = this.#requests.get(id)
    if (request?.phase === 'held' && request.number === number) this.#remove(request)
    if (outcome !== held) {
      this.#broken('P7', outcome ? `${id} was released and not held` : `${id} was held and told lost`)
    }
  }

  #extendedOrYielded(
    session: string,
    operation: ExtendOrYield,
    outcome: RequestStatus,
    hints: readonly Hint[],
  ): void {
    const request = this.#holding(operation.request.id, operation.number)
    if (!request) {
      this.#hinted(hints)
      if (outcome.state === 'held' && outcome.id === operation.request.id)
        this.#broken('P7', `${operation.request.id} was passed on and not held`)
      return
    }
    const wanted = request.claims
      .flatMap(({ key }) => this.#queue(key))
      .some(other => other.phase === 'waiting' && this.#now < this.#expiry(other))
    if (outcome.state === 'held' && outcome.id === operation.request.id) {
      if (wanted)
        this.#broken('P4', `${operation.request.id} is kept for more local callers, and others wait`)
      request.lease = operation.lease
      this.#hinted(hints)
      this.#held(request, outcome)
      return
    }
    if (!wanted) this.#broken('P5', `${operation.request.id} is given up, and no other request waits`)
    this.#remove(request)
    this.#hinted(hints)
    const next = this.#append({
      ...operation,
      request: { ...operation.next, session, claims: request.claims },
    })
    if (outcome.state === 'held') this.#granted(next, outcome)
    else if (outcome.state !== 'queued')
      this.#broken('P8', `${next.id} is ${outcome.state} after extendOrYield`)
  }

  #downgraded(id: string, number: number, outcome: boolean): void {
    const request = this.#holding(id, number)
    if (outcome !== (request !== undefined)) this.#broken('P7', `${id} is downgraded: ${outcome}`)
    if (!request) return
    request.claims = request.claims.map(({ key }) => ({ key, mode: 'shared' }))
    this.#touch(request)
    this.#cleared(request, this.#now)
  }

  #forceReleased(key: string, number: number, outcome: boolean, hints: readonly Hint[]): void {
    const request = this.#queue(key).find(one => one.phase === 'held' && one.number === number)
    if (outcome !== (request !== undefined)) this.#broken('P7', `number ${number} is freed: ${outcome}`)
    if (request) this.grants.get(number)!.overridden = true
    this.#hinted(hints)
  }

  #revoked(session: string, outcome: number, hints: readonly Hint[]): void {
    const requests = [...this.#requests.values()].filter(one => one.session === session)
    for (const { number } of requests) {
      const record = this.grants.get(number)
      if (record) record.overridden = true
    }
    if (outcome !== requests.length)
      this.#broken('P7', `${outcome} requests are revoked, and there were ${requests.length}`)
    this.#hinted(hints)
    for (const { id } of requests)
      if (this.#requests.has(id)) this.#broken('P9', `${id} outlives its session`)
  }

  #committed(operation: Commit, outcome: CommitOutcome): void {
    const { guard } = operation
    if (!guard || outcome.state !== 'committed') return
    const request = this.#holding(guard.request.id, guard.number)
    if (!request) this.#broken('P13', `${guard.request.id} commits and is not held`)
    else if (operation.release) this.#remove(request)
  }

  /** Applies the server's hints to other sessions, in the server's order. */
  #hinted(hints: readonly Hint[]): void {
    for (const { type, id } of hints) {
      if (type === 'changed') continue
      const request = this.#requests.get(id)
      if (!request) this.#broken('P7', `${id} is told ${type} and not there`)
      else if (type === 'lost') this.#dropped(request)
      else this.#reserved(request)
    }
  }

  #dropped(request: Observed): void {
    const operation = this.#operation
    const expired = this.#now >= this.#expiry(request)
    const overridden =
      (operation?.type === 'revoke' && operation.session === request.session) ||
      (operation?.type === 'forceRelease' && operation.number === request.number)
    if (!expired && !overridden) this.#broken('P7', `${request.id} is dropped for nothing`)
    if (expired && !overridden) {
      this.#checkExpired(request)
      this.#checkWindow(request)
    }
    this.#remove(request)
  }

  #reserved(request: Observed): void {
    if (request.phase !== 'waiting') this.#broken('P5', `${request.id} is woken and does not wait`)
    if (this.#isSilent(request)) this.#broken('P9', `${request.id} is woken and has expired`)
    for (const claim of request.claims) {
      const before = this.#before(claim, request)
      if (before) this.#broken('P4', `${request.id} is woken, and ${before.id} stands before it`)
    }
    this.#checkPassed(request)
    request.phase = 'reserved'
    request.expires = this.#now + CLAIM_WINDOW
    request.reservedBy = this.#session
  }

  #granted(request: Observed, { number }: { number: number }): void {
    for (const claim of request.claims) {
      const before = this.#before(claim, request)
      if (before?.phase === 'held') this.#broken('P1', `${request.id} is granted while ${before.id} is held`)
      else if (before) this.#broken('P4', `${request.id} is granted, and ${before.id} stands before it`)
    }
    // A reserved request passed the silent waiters at the time of its reservation.
    if (request.phase === 'waiting') this.#checkPassed(request)
    this.#held(request, { number })
  }

  /**
   * Checks that no silent waiter remains before a granted request. It might come back, and would not see the grants
   * behind it.
   */
  #checkPassed(request: Observed): void {
    for (const { key } of request.claims) {
      for (const other of this.#queue(key)) {
        if (other === request) break
        if (this.#isSilent(other))
          this.#broken('P1', `${request.id} goes past ${other.id}, which is left there`)
      }
    }
  }

  #held(request: Observed, { number }: { number: number }): void {
    for (const { key } of request.claims) {
      if (number <= (this.#highest.get(key) ?? 0))
        this.#broken('P2', `number ${number} of ${request.id} does not rise`)
      this.#highest.set(key, number)
    }
    request.phase = 'held'
    request.number = number
    request.expires = this.#now + request.lease
    request.seenAt = this.#now
    const place = this.grants.size
    this.grants.set(number, { request, place, expires: request.expires, overridden: false })
    this.#onGrant(request)
  }

  #append({
    request: { id, session, claims },
    lease,
    wait,
  }: Pick<Enqueue, 'request' | 'lease' | 'wait'>): Observed {
    const now = this.#now
    const life = entryTtl({ lease, wait })
    const request: Observed = {
      id,
      session,
      claims,
      phase: 'waiting',
      expires: now + life,
      lease,
      life,
      look: heartbeatWithin({ lease, wait }),
      number: 0,
      isCovered: false,
      seenAt: now,
      clearedAt: now,
      wokenAt: undefined,
      reservedBy: undefined,
    }
    this.#requests.set(id, request)
    for (const { key } of claims) {
      const queue = this.#queues.get(key)
      if (queue) queue.push(request)
      else this.#queues.set(key, [request])
    }
    return request
  }

  #remove(request: Observed): void {
    this.#cleared(request, Math.min(this.#now, this.#expiry(request)))
    this.#touch(request)
    this.#requests.delete(request.id)
    for (const { key } of request.claims) {
      const queue = this.#queues.get(key)!
      queue.splice(queue.indexOf(request), 1)
    }
  }

  #touch(request: Observed): void {
    for (const { key } of request.claims) this.#touched.add(key)
  }

  /** Records that the requests behind this one no longer wait for it. */
  #cleared(request: Observed, at: number): void {
    for (const { key } of request.claims) {
      const queue = this.#queue(key)
      for (let place = queue.indexOf(request) + 1; place < queue.length; place++) {
        const behind = queue[place]!
        behind.clearedAt = Math.max(behind.clearedAt, at)
      }
    }
  }

  #holding(id: string, number: number): Observed | undefined {
    const request = this.#requests.get(id)
    return request?.phase === 'held' && request.number === number && this.#now < request.expires
      ? request
      : undefined
  }

  #queue(key: string): readonly Observed[] {
    return this.#queues.get(key) ?? []
  }

  /** Whether a waiter has expired. An expired waiter blocks no other request. */
  #isSilent(request: Observed): boolean {
    return request.phase === 'waiting' && this.#now >= this.#expiry(request)
  }

  /** Returns the expiry of a request. A covered waiter lives as long as its session sends signs. */
  #expiry({ phase, expires, isCovered, session, lease }: Observed): number {
    if (phase !== 'waiting' || !isCovered) return expires
    return Math.max(expires, this.#seen.get(session)! + coverTtl(lease))
  }

  /** Returns a request that conflicts with a claim, among those before the request or among all. Prefers a holder. */
  #before(claim: Claim, request: Observed | undefined): Observed | undefined {
    let found: Observed | undefined
    let held = 0
    let all = 0
    for (const other of this.#queue(claim.key)) {
      if (other === request) break
      if (this.#isSilent(other)) continue
      const ahead = other.claims.find(({ key }) => key === claim.key)!
      if (ahead.mode === 'permits' && claim.mode === 'permits') {
        all += ahead.permits
        if (other.phase === 'held') held += ahead.permits
        if (all + claim.permits > claim.max) found ??= other
        if (held + claim.permits > claim.max) return { ...other, phase: 'held' }
      } else if (ahead.mode !== 'shared' || claim.mode !== 'shared') {
        if (other.phase === 'held') return other
        found ??= other
      }
    }
    return found?.phase === 'held' ? { ...found, phase: 'waiting' } : found
  }

  /** Checks that no request that could run waits for the keys that the operation changed. */
  #checkServed(): void {
    for (const key of this.#touched) {
      for (const request of this.#queue(key)) {
        const isSilent = this.#isSilent(request)
        const placeKept = isSilent ? Math.max(request.lease - WAITER_TTL, 0) : 0
        if (this.#now >= this.#expiry(request) + placeKept) {
          this.#broken('P9', `${request.id} has expired and still stands before others`)
          return
        }
        if (isSilent) continue
        const claim = request.claims.find(one => one.key === key)!
        if (this.#before(claim, request)) break
        if (request.phase === 'waiting' && request.claims.every(one => !this.#before(one, request))) {
          this.#broken('P5', `${request.id} can run and is not woken`)
          return
        }
      }
    }
  }

  /** Checks that a session that was neither stopped nor cut off has kept others waiting no longer than promised. */
  #checkStall(request: Observed, look: number): void {
    const troubled = this.#troubledUntil(request)
    if (troubled === undefined) return
    const delay = longestDelay(this.#climate)
    const stall = this.#now - Math.max(request.clearedAt, troubled)
    // A sign waits for the answer to the last one, and the answer to that sign makes the request check in.
    if (stall > look + 6 * delay + SLACK)
      this.#broken('P9', `${request.id} could run for ${stall} ms before it was granted`)
    const { wokenAt } = request
    if (wokenAt === undefined || troubled > wokenAt) return
    if (this.#now - wokenAt > 3 * delay + SLACK)
      this.#broken('P5', `${request.id} was woken ${this.#now - wokenAt} ms before it was granted`)
  }

  /** Checks that a waiting request of a session that was neither stopped nor cut off does not expire. */
  #checkExpired(request: Observed): void {
    const troubled = this.#troubledUntil(request)
    const delay = longestDelay(this.#climate)
    // A request that its process has given up may arrive this late, if its cancellation was lost.
    if (troubled === undefined || troubled > request.seenAt - delay) return
    if (request.phase === 'waiting' && request.life - request.look > 3 * delay + SLACK)
      this.#broken('P4', `${request.id} was heard of in time and lost its place`)
    const { wokenAt } = request
    if (request.phase === 'reserved' && wokenAt !== undefined && this.#now - wokenAt > 3 * delay + SLACK)
      this.#broken('P5', `${request.id} was woken and did not check in`)
  }

  /** Checks that a session that reserved keys for a silent request serves them again after the claim window. */
  #checkWindow(request: Observed): void {
    const reserver = request.reservedBy === undefined ? undefined : this.#processOf(request.reservedBy)
    if (request.phase !== 'reserved' || !reserver?.open || reserver.frozen) return
    // In one thread, a woken waiter claims its reservation within the call that woke it.
    if (this.#climate.kind === 'direct' || reserver.session === request.session) return
    const reservedAt = request.expires - CLAIM_WINDOW
    const delay = longestDelay(this.#climate)
    if (reserver.troubledUntil + this.#offset > reservedAt - delay) return
    const late = this.#now - request.expires
    if (late > CLAIM_WINDOW * WINDOW_LOOK + 2 * delay + SLACK && this.#awaitedSince(request, request.expires))
      this.#broken('P9', `${request.id} kept others out for ${late} ms after its window`)
  }

  #awaitedSince({ claims, id }: Observed, time: number): boolean {
    return claims.some(({ key }) => this.#queue(key).some(other => other.id !== id && other.seenAt < time))
  }

  /** Returns the server time until which the process of a request had trouble; undefined if it is gone or frozen. */
  #troubledUntil({ session }: Pick<Observed, 'session'>): number | undefined {
    const process = this.#processOf(session)
    if (!process?.alive || process.frozen) return undefined
    return process.troubledUntil + this.#offset
  }

  get #now(): number {
    return this.#timeline.now + this.#offset
  }

  #broken(promise: Broken, message: string): void {
    this.#history.violate(promise, message)
  }
}

function maxOf(request: Observed, key: string): number | undefined {
  const claim = request.claims.find(one => one.key === key)
  return claim?.mode === 'permits' ? claim.max : undefined
}
