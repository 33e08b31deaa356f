import { beforeEach, describe, expect, test } from 'vitest'
import { VirtualClock } from '../../../src/base/clock.js'
import { MemoryState } from '../../../src/engine/kit/memory-state.js'
import type { LockRequest, RequestStatus, SignOutcome } from '../../../src/engine/contract.js'
import { WAITER_TTL } from '../../../src/engine/wait-times.js'
import type { Claim } from '../../../src/engine/claim.js'
import { LockTable } from '../../../src/engine/lock-table.js'
import type { Effect } from '../../../src/engine/table-state.js'
import { lockRequest } from '../../support/lock-request.js'

const x = (...keys: string[]): Claim[] => keys.map(key => ({ key, mode: 'exclusive' }))
const s = (...keys: string[]): Claim[] => keys.map(key => ({ key, mode: 'shared' }))
const p = (key: string, permits: number, max = 4): Claim[] => [{ key, mode: 'permits', permits, max }]

const LEASE = 5000

let now: number
let effects: Effect[]
let state: MemoryState
let table: LockTable
let requests: Map<string, LockRequest>

beforeEach(() => {
  now = 0
  effects = []
  requests = new Map()
  state = new MemoryState(100, new VirtualClock())
  table = new LockTable(state, effect => void effects.push(effect))
})

/** Returns the request that was enqueued under this ID, or a request that was never enqueued. */
const known = (id: string): LockRequest => requests.get(id) ?? lockRequest(id)
/** Creates a request with the claims of another one. */
function like(id: string, other: string): LockRequest {
  const request = lockRequest(id, known(other).claims)
  requests.set(id, request)
  return request
}

function enqueue(
  id: string,
  claims: Claim[],
  { lease = LEASE, wait = Infinity, label = undefined as string | undefined } = {},
): RequestStatus {
  const request = lockRequest(id, claims, label)
  requests.set(id, request)
  return table.decide({ type: 'enqueue', request, lease, wait }, now)
}
const checkIn = (id: string, lease = LEASE): RequestStatus =>
  table.decide({ type: 'checkIn', request: known(id), lease, wait: Infinity }, now)
const renew = (id: string, number: number): boolean =>
  table.decide({ type: 'renew', request: known(id), number, lease: LEASE }, now)
const release = (id: string, number: number): boolean =>
  table.decide({ type: 'release', request: known(id), number }, now)
function extendOrYield(id: string, number: number, next: string): RequestStatus {
  const terms = { lease: LEASE, wait: Infinity }
  return table.decide(
    { type: 'extendOrYield', request: known(id), number, next: like(next, id), ...terms },
    now,
  )
}
/** Returns the queue of a key: `a held, b waiting`. */
const queue = (key: string): string =>
  table
    .decide({ type: 'inspect', prefix: key }, now)
    .filter(report => report.key === key)
    .map(({ session, phase }) => `${session} ${phase}`)
    .join(', ')
/** Returns the notifications since the last call: `wake a.1`. */
function told(): string[] {
  return effects.splice(0).map(({ type, id }) => `${type} ${id}`)
}
const numberOf = (standing: RequestStatus): number => (standing as { number: number }).number

describe('enqueue', () => {
  test('another number of permits is refused as long as the key is in use', () => {
    const held = enqueue('a.1', p('k', 1, 4))
    expect(enqueue('b.1', p('k', 1, 5))).toEqual({ state: 'mismatch', key: 'k', max: 4 })
    expect(queue('k')).toBe('a held')
    release('a.1', numberOf(held))
    expect(enqueue('b.1', p('k', 1, 5)).state).toBe('held')
  })

  test('a waiter far back in a queue learns those at both ends', () => {
    const sessions = Array.from({ length: 12 }, (_, index) => `s${index}`)
    for (const session of sessions) enqueue(`${session}.1`, x('k'))
    const behind = [...sessions.slice(0, 4), ...sessions.slice(-4)]
    expect(enqueue('last.1', x('k'))).toMatchObject({ sessionsAhead: behind })
  })

  test('the first waiter learns all holders', () => {
    const sessions = Array.from({ length: 12 }, (_, index) => `s${index}`)
    for (const session of sessions) enqueue(`${session}.1`, p('k', 1, 12))
    expect(enqueue('first.1', p('k', 1, 12))).toMatchObject({ sessionsAhead: sessions })
  })
})

describe('a silent waiter', () => {
  const LONG = 6 * WAITER_TTL

  test('is dropped for a request that comes and does not wait', () => {
    enqueue('a.1', s('k'), { lease: LONG })
    enqueue('b.1', x('k', 'z'), { lease: LONG })
    now = WAITER_TTL - 1
    expect(enqueue('c.1', s('k'), { wait: 0 })).toEqual({ state: 'busy' })
    now = WAITER_TTL
    expect(enqueue('c.2', s('k'), { wait: 0 }).state).toBe('held')
    expect(queue('z')).toBe('')
    expect(checkIn('b.1', LONG)).toEqual({ state: 'gone' })
  })
})

test.each([[x('k')], [x('k', 'j')]])('all the requests of a dead process may expire at once: %j', claims => {
  const count = 10_000
  for (let i = 0; i < count; i++) {
    const phase = i === 0 ? 'held' : 'waiting'
    const terms = { phase, expires: LEASE, lease: LEASE, number: 0, label: undefined, since: 0 } as const
    state.append({ id: `a.${i}`, session: 'a', claims, ...terms })
  }
  now = 2 * LEASE
  expect(enqueue('b.1', claims)).toMatchObject({ state: 'held' })
  expect(told()).toHaveLength(count)
  expect(queue('k')).toBe('b held')
})

describe('inspect', () => {
  test('it shows all details of a request', () => {
    state.join({ session: 'a', host: 'machine', pid: 77, label: 'of the box' })
    enqueue('a.1', x('k'), { label: 'mine' })
    now = 100
    enqueue('b.1', p('k', 2), { lease: 900 })
    now = 150
    expect(table.decide({ type: 'inspect', prefix: '' }, now)).toEqual([
      {
        key: 'k',
        session: 'a',
        host: 'machine',
        pid: 77,
        label: 'mine',
        claim: x('k')[0],
        phase: 'held',
        number: 101,
        age: 150,
        expiresIn: LEASE - 150,
      },
      {
        key: 'k',
        session: 'b',
        host: '',
        pid: 0,
        label: undefined,
        claim: p('k', 2)[0],
        phase: 'waiting',
        number: 0,
        age: 50,
        expiresIn: 850,
      },
    ])
  })
})

describe('a key that is bound to a transaction of an earlier holder', () => {
  let bound: Set<string>

  beforeEach(() => {
    bound = new Set(['k'])
    Object.assign(state, { isBound: (key: string) => bound.has(key) })
  })

  test('is granted to no request, and waiters look for its end twenty times a second', () => {
    expect(enqueue('a.1', x('k'), { wait: 0 })).toEqual({ state: 'busy' })
    expect(enqueue('a.2', x('j', 'k'))).toMatchObject({ state: 'queued', place: 0, checkInAfter: 50 })
    expect(enqueue('b.1', x('j'))).toMatchObject({ state: 'queued' })
    const sign = { type: 'alive', session: 'a', requests: [known('a.2')] } as const
    expect(table.decide(sign, now)).toEqual({ due: [], next: 50 })
    bound.clear()
    expect(checkIn('a.2')).toMatchObject({ state: 'held' })
  })

  test('is not claimed by a request for which it was reserved, and stays reserved', () => {
    bound.clear()
    enqueue('a.1', x('k'))
    enqueue('b.1', x('k'))
    release('a.1', 101)
    bound.add('k')
    expect(checkIn('b.1')).toMatchObject({ state: 'queued', checkInAfter: 50 })
    bound.clear()
    expect(checkIn('b.1')).toMatchObject({ state: 'held' })
  })

  test('is not kept for further local callers, and is renewed for its holder', () => {
    bound.clear()
    enqueue('a.1', x('k'))
    bound.add('k')
    expect(renew('a.1', 101)).toBe(true)
    expect(extendOrYield('a.1', 101, 'a.2')).toMatchObject({ state: 'queued', id: 'a.2' })
  })
})

describe('a sign of life', () => {
  const sign = (session: string, ...ids: string[]): SignOutcome =>
    table.decide({ type: 'alive', session, requests: ids.map(known) }, now)

  beforeEach(() => {
    enqueue('a.1', x('k'), { lease: 60_000 })
    enqueue('b.1', x('k'), { lease: 60_000 })
    enqueue('c.1', x('k'), { lease: 60_000 })
  })

  test('keeps them across a restart of the engine', () => {
    now = 4000
    sign('b', 'b.1')
    state.load(state.save())
    now = 4000 + WAITER_TTL - 1
    expect(queue('k')).toBe('a held, b waiting')
  })

  test('must name a reservation again that a steal has made wait', () => {
    sign('b', 'b.1')
    release('a.1', 101)
    const request = lockRequest('d.1', x('k'))
    table.decide({ type: 'enqueue', request, lease: LEASE, wait: Infinity, steal: true }, now)
    now = 4000
    sign('b')
    now = WAITER_TTL
    expect(queue('k')).not.toContain('b')
  })
})
