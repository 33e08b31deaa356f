import fc from 'fast-check'
import { describe, test } from 'vitest'
import { VirtualClock } from '../../../src/base/clock.js'
import { MemoryState } from '../../../src/engine/kit/memory-state.js'
import type { LockOperation, LockRequest, SignOutcome } from '../../../src/engine/contract.js'
import { CLAIM_WINDOW, coverTtl } from '../../../src/engine/wait-times.js'
import type { Claim } from '../../../src/engine/claim.js'
import { LockTable } from '../../../src/engine/lock-table.js'
import type { Effect, Request } from '../../../src/engine/table-state.js'
import { NaiveTable } from './naive-table.js'

const KEYS = ['a', 'b', 'c', 'd'] as const
/** Maximum time to shrink a failure, in milliseconds. */
const MAX_TIME = 20_000
const SESSIONS = ['s0', 's1', 's2'] as const

/** One step: time passes, and then an operation concerns the request that `which` selects. */
interface Step {
  readonly after: number
  readonly type: LockOperation['type']
  readonly which: number
  readonly session: number
  readonly claims: readonly Claim[]
  readonly lease: number
  readonly wait: number
  /** Whether the operation names the number of another grant, or a request that is long gone. */
  readonly astray: boolean
}

const claim = (key: string): fc.Arbitrary<Claim> =>
  // All permits of a key have the same maximum. Readers, writers and permits rarely meet on a key, but they may.
  fc.oneof(
    { weight: 4, arbitrary: fc.constant<Claim>({ key, mode: 'exclusive' }) },
    { weight: key < 'c' ? 3 : 1, arbitrary: fc.constant<Claim>({ key, mode: 'shared' }) },
    {
      weight: key < 'c' ? 1 : 3,
      arbitrary: fc
        .integer({ min: 1, max: 4 })
        .map<Claim>(permits => ({ key, mode: 'permits', permits, max: 4 })),
    },
  )

const claims = fc
  .subarray([...KEYS], { minLength: 1, maxLength: 3 })
  .chain(keys => fc.tuple(...keys.map(key => claim(key))))

const step: fc.Arbitrary<Step> = fc.record({
  after: fc.oneof(
    { weight: 6, arbitrary: fc.constant(0) },
    { weight: 3, arbitrary: fc.integer({ min: 1, max: 60 }) },
    { weight: 1, arbitrary: fc.integer({ min: 100, max: 1500 }) },
  ),
  type: fc.oneof(
    { weight: 10, arbitrary: fc.constant('enqueue' as const) },
    { weight: 8, arbitrary: fc.constant('checkIn' as const) },
    { weight: 3, arbitrary: fc.constant('alive' as const) },
    { weight: 6, arbitrary: fc.constant('release' as const) },
    {
      weight: 3,
      arbitrary: fc.constantFrom('cancel', 'extendOrYield', 'renew', 'downgrade', 'sweepExpired'),
    },
    { weight: 1, arbitrary: fc.constantFrom('forceRelease', 'revoke') },
  ),
  // The newest requests are the most interesting ones, so they are selected more often.
  which: fc.oneof(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 0, max: 30 })),
  session: fc.integer({ min: 0, max: SESSIONS.length - 1 }),
  claims,
  lease: fc.constantFrom(20, 50, 300, 2000, 60_000),
  wait: fc.constantFrom(0, 15, 400, 3000, Infinity, Infinity),
  astray: fc.integer({ min: 0, max: 9 }).map(chance => chance === 0),
})

/** Compares the real table with the naive one. */
class Comparison {
  now = 0
  readonly #state = new MemoryState(1000, new VirtualClock())
  readonly #effects: Effect[] = []
  readonly #table = new LockTable(this.#state, effect => void this.#effects.push(effect))
  readonly #naive = new NaiveTable(1000)
  /** IDs of requests, the newest first. */
  readonly #ids: string[] = []
  /** By request: its position in the order of arrival. */
  readonly #arrivals = new Map<string, number>()
  #lastNumber = 1000

  take(step: Step): void {
    this.now += step.after
    const operation = this.#operation(step)
    const before = this.#raw()
    const remnants = new Set(before.filter(each => this.now >= this.#expiry(each)).map(({ id }) => id))
    const reservedBefore = new Set(before.filter(({ phase }) => phase === 'reserved').map(({ id }) => id))
    this.#effects.length = 0

    const expected = this.#naive.decide(operation, this.now, remnants)
    const outcome = this.#table.decide(operation, this.now)

    if (operation.type === 'alive') this.#checkSign(operation.requests, outcome as SignOutcome)
    else if (operation.type !== 'inspect' && operation.type !== 'sweepExpired') {
      const same =
        expected !== null && typeof expected === 'object'
          ? Object.entries(expected).every(([name, value]) => (outcome as never)[name] === value)
          : outcome === expected
      check(same, `${JSON.stringify(operation)} gave ${JSON.stringify([outcome, expected])}`)
    }
    this.#checkNumbers(outcome)
    this.#checkSame()
    this.#checkExclusion()
    this.#checkWakes(reservedBefore, operation)
    this.#checkLostWakes(operation)
  }

  #operation(step: Step): LockOperation {
    const { type, lease, claims, wait, astray } = step
    const session = SESSIONS[step.session]!
    const id = this.#ids[step.which % Math.max(this.#ids.length, 1)] ?? 'unknown'
    const request = this.#state.request(id)
    const number = (request?.number ?? 0) + (astray ? 1 : 0)
    const fresh = (of: string, claimed: readonly Claim[]): LockRequest => {
      const made = `r${this.#ids.length}`
      this.#ids.unshift(made)
      return { id: made, session: of, claims: claimed, label: undefined }
    }
    const named: LockRequest = {
      id,
      session: request?.session ?? session,
      claims: request?.claims ?? claims,
      label: undefined,
    }
    switch (type) {
      case 'enqueue':
        // Sometimes a request is sent again, as if its answer had been lost.
        return { type, request: astray && request ? named : fresh(session, claims), lease, wait }
      case 'checkIn':
        return { type, request: named, lease, wait: Math.max(wait, 1) }
      case 'alive': {
        // A sign names some of the requests of its session, and sometimes one that is gone.
        const own = this.#raw().filter(other => other.session === session && (astray || other.id !== id))
        const requests = own.map(other => ({ ...other, label: undefined }))
        const isGone = !request || request.session === session
        return { type, session, requests: astray && isGone ? [...requests, { ...named, session }] : requests }
      }
      case 'cancel':
        return { type, request: named }
      case 'renew':
        return { type, request: named, number, lease }
      case 'release':
        return { type, request: named, number }
      case 'downgrade':
        // Only write grants can be downgraded, and never grants of permits.
        return request?.claims.some(({ mode }) => mode === 'permits')
          ? { type: 'sweepExpired', keys: [...KEYS] }
          : { type, request: named, number }
      case 'extendOrYield': {
        const next = fresh(named.session, named.claims)
        return { type, request: named, number, next, lease, wait: Math.max(wait, 1) }
      }
      case 'forceRelease':
        return { type, key: request?.claims[0]?.key ?? 'a', number }
      case 'revoke':
        return { type, session }
      case 'sweepExpired':
        return { type, keys: [...KEYS] }
      case 'inspect':
        return { type, prefix: '' }
    }
  }

  /** Returns all requests of the real table, expired ones included, in order of arrival. */
  #raw(): Request[] {
    const all = new Set<Request>()
    for (const session of SESSIONS) for (const request of this.#state.requestsOf(session)) all.add(request)
    for (const { id } of all) if (!this.#arrivals.has(id)) this.#arrivals.set(id, this.#arrivals.size)
    return [...all].sort((a, b) => this.#arrivals.get(a.id)! - this.#arrivals.get(b.id)!)
  }

  /** Returns the expiry of a request of the real table. */
  #expiry({ phase, expires, isCovered, lease, session }: Request): number {
    const isKept = phase === 'waiting' && isCovered
    return isKept ? Math.max(expires, this.#state.seen(session) + coverTtl(lease)) : expires
  }

  /**
   * Checks the outcome of a sign: `due` has the requests that no longer wait, and `next` is the time until the first
   * end of a request before its first waiters.
   */
  #checkSign(requests: readonly LockRequest[], { due, next }: SignOutcome): void {
    const ids = [...new Set(requests.map(({ id }) => id))]
    const gone = ids.filter(id => this.#state.request(id)?.phase !== 'waiting')
    check(due.join() === gone.join(), `due are ${gone.join()}, not ${due.join()}`)
    const keys = new Set(requests.flatMap(request => request.claims.map(({ key }) => key)))
    const ends = [...keys].flatMap(key => {
      const on = this.#raw().filter(({ claims: claimed }) => claimed.some(each => each.key === key))
      const first = on.findIndex(each => each.phase === 'waiting' && this.now < this.#expiry(each))
      if (first < 0 || !ids.includes(on[first]!.id)) return []
      return on.slice(0, first).flatMap(({ phase, expires }) => (phase === 'waiting' ? [] : [expires]))
    })
    const end = Math.min(...ends) - this.now
    check(next === end, `the next look is in ${end}, not ${next}`)
  }

  /** Checks that each new grant has the next number. */
  #checkNumbers(outcome: unknown): void {
    const { state, number = 0 } = (outcome ?? {}) as { state?: string; number?: number }
    if (state !== 'held' || number <= this.#lastNumber) return
    check(number === this.#lastNumber + 1, 'the next grant has the next number')
    this.#lastNumber = number
  }

  /** Checks that both tables have the same live requests, with the same holders and the same expiry. */
  #checkSame(): void {
    for (const request of this.#naive.requests) {
      const real = this.#state.request(request.id)
      if (real?.phase === 'reserved') {
        // Only the real table knows the claim window, for which a reservation lasts.
        check(real.expires <= this.now + CLAIM_WINDOW, `${real.id} is reserved for a window at the most`)
        request.expires = real.expires
      } else if (real) check(this.#expiry(real) === request.expires, `${real.id} ends when it should`)
      request.reserved = real?.phase === 'reserved'
    }
    const live = this.#raw().filter(each => this.now < this.#expiry(each))
    const expected = this.#naive.requests.filter(({ expires }) => this.now < expires)
    check(
      live.map(({ id, phase }) => `${id} ${phase === 'held'}`).join() ===
        expected.map(({ id, granted }) => `${id} ${granted}`).join(),
      `the same requests are here: ${JSON.stringify([live, expected])}`,
    )
  }

  /** Checks that each holder and each reserved request is compatible with all earlier requests, on all of its keys. */
  #checkExclusion(): void {
    const raw = this.#raw()
    for (const [index, request] of raw.entries()) {
      if (request.phase === 'waiting' || this.now >= request.expires) continue
      const before = raw.slice(0, index).filter(each => this.now < this.#expiry(each))
      check(this.#naive.mayHold(request, before), `${request.id} goes with those before it`)
    }
    for (const key of KEYS) {
      const entries = [...(this.#state.queue(key) ?? [])]
      const arrivals = entries.map(({ request }) => this.#arrivals.get(request.id)!)
      check(
        arrivals.every((arrival, index) => index === 0 || arrival > arrivals[index - 1]!),
        `the queue of ${key} is in order of arrival`,
      )
    }
  }

  /**
   * Checks that an operation wakes each request that it reserves, none twice, and no other request except that of its
   * caller.
   */
  #checkWakes(reservedBefore: ReadonlySet<string>, operation: LockOperation): void {
    const woken = this.#effects.filter(({ type }) => type === 'wake').map(({ id }) => id)
    check(new Set(woken).size === woken.length, 'no request is woken twice')
    const caller = 'request' in operation ? operation.request.id : undefined
    for (const { id, phase } of this.#raw()) {
      if (phase === 'reserved' && !reservedBefore.has(id)) check(woken.includes(id), `${id} is woken`)
    }
    for (const id of woken) {
      if (id !== caller) check(this.#state.request(id)?.phase === 'reserved', `${id} is woken for something`)
    }
  }

  /** Checks that each request that can run holds its keys or is reserved. */
  #checkLostWakes(operation: LockOperation): void {
    const raw = this.#raw()
    const served = operation.type === 'sweepExpired'
    for (const [index, request] of raw.entries()) {
      if (request.phase !== 'waiting' || this.now >= this.#expiry(request)) continue
      // An expired request may block others until an operation finds it. A sweep finds all of them.
      const before = raw.slice(0, index).filter(each => !served || this.now < this.#expiry(each))
      check(!this.#naive.mayHold(request, before), `${request.id} waits for a request before it`)
    }
  }
}

function check(condition: boolean, what: string): void {
  if (!condition) throw new Error(`not so: ${what}`)
}

describe('the lock table against a naive one', () => {
  test('random operations at random times have the same outcomes, and keep every promise', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80, size: 'max' }), steps => {
        const comparison = new Comparison()
        for (const one of steps) comparison.take(one)
      }),
      { numRuns: 600, interruptAfterTimeLimit: MAX_TIME },
    )
  }, 60_000)

  test('many requests on few keys, with little time between', () => {
    const crowded = step.map(one => ({ ...one, after: one.after > 20 ? 1 : one.after, lease: 60_000 }))
    fc.assert(
      fc.property(fc.array(crowded, { minLength: 40, maxLength: 120, size: 'max' }), steps => {
        const comparison = new Comparison()
        for (const one of steps) comparison.take(one)
      }),
      { numRuns: 250, interruptAfterTimeLimit: MAX_TIME },
    )
  }, 60_000)
})
