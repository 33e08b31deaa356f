import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Claim } from '../../../src/engine/claim.js'
import type { LockRequest, RequestStatus } from '../../../src/engine/contract.js'
import { decodeKeyEntry } from '../../../packages/hazelcast/src/entry-text.js'
import { pass } from '../../support/passing.js'
import { exclusive, requestOf, settled, type PromptBox } from './prompt-entries.js'
import { PromptWorld } from './prompt-world.js'

/** Lease of all locks, in milliseconds. */
const LEASE = 4000
/** Longer than the lifetime of a session's entry without a lease, in milliseconds. */
const LONG = 120_000
const SIGN_INTERVAL = 1500

let world: PromptWorld

beforeEach(() => {
  world = new PromptWorld()
})
afterEach(() => {
  world.end()
})

function enqueue({ operations }: PromptBox, request: LockRequest, wait = LONG): Promise<RequestStatus> {
  return operations.execute({ type: 'enqueue', request, lease: LEASE, wait })
}

async function held(by: PromptBox, request: LockRequest, wait = LONG) {
  const status = await enqueue(by, request, wait)
  if (status.state !== 'held') expect.fail(`${request.id} is ${status.state}`)
  return { request, number: status.number }
}

async function passed(time: number): Promise<void> {
  await pass(world.clock, time)
  await settled()
}

const shared = (key: string): Claim[] => [{ key, mode: 'shared' }]

test('a box that only waits is not taken for dead', async () => {
  const [holder, first, second] = [world.box('holder'), world.box('first'), world.box('second')]
  const granted = await held(holder, requestOf('holder', '1', exclusive('a')))
  const waiting = [first, second].map((each, at) => {
    const session = ['first', 'second'][at]!
    return { each, session, request: requestOf(session, '1', exclusive('a')) }
  })
  for (const { each, request } of waiting) expect((await enqueue(each, request)).state).toBe('queued')
  for (let time = 0; time < LONG; time += SIGN_INTERVAL) {
    await passed(SIGN_INTERVAL)
    expect(await holder.operations.execute({ type: 'renew', ...granted, lease: LEASE })).toBe(true)
    for (const { each, session, request } of waiting) {
      const { due } = await each.operations.execute({ type: 'alive', session, requests: [request] })
      expect(due).toEqual([])
    }
    await settled()
  }
})

test('a box that only takes several keys at once is not taken for dead', async () => {
  const [one, other] = [world.box('one'), world.box('other')]
  // Creates the entries of the sets, so that a single change can grant a set later.
  for (const [at, keys] of [['a', 'b'], ['z']].entries()) {
    const before = await held(one, requestOf('one', `${at}`, exclusive(...keys)))
    await one.operations.execute({ type: 'release', ...before })
  }
  await passed(45_000)
  const granted = await held(one, requestOf('one', '2', exclusive('a', 'b')))
  for (const key of ['a', 'b'])
    expect((await enqueue(other, requestOf('other', key, exclusive(key)))).state).toBe('queued')
  await settled()
  expect(await one.operations.execute({ type: 'renew', ...granted, lease: LEASE })).toBe(true)
})

test('a set of keys that were never used is granted by one change of each', async () => {
  const one = world.box('one')
  await held(one, requestOf('one', '1', exclusive('a', 'b')))
  for (const key of ['a', 'b'])
    expect(decodeKeyEntry(key, world.entries.texts.get(key)!).locks.turn).toBe(Date.now() * 1000 + 1)
})

test('a box that was taken for dead, and comes back, keeps its later grants', async () => {
  const [one, other] = [world.box('one'), world.box('other')]
  await held(one, requestOf('one', '1', shared('a')))
  await passed(LONG)
  const taken = await held(other, requestOf('other', '1', exclusive('a')), 0)
  await other.operations.execute({ type: 'release', ...taken })
  await passed(1)
  const granted = await held(one, requestOf('one', '2', shared('a')))
  expect((await enqueue(other, requestOf('other', '2', exclusive('a')), 0)).state).toBe('busy')
  expect(await one.operations.execute({ type: 'renew', ...granted, lease: LEASE })).toBe(true)
})

test('a box that comes back while others clean up keeps its grants', async () => {
  const [one, other] = [world.box('one'), world.box('other')]
  await held(one, requestOf('one', '1', shared('left')))
  await passed(3 * LONG)
  const granted: Awaited<ReturnType<typeof held>>[] = []
  world.entries.beforeScan = async () => {
    if (granted.length > 0) return
    await passed(1)
    granted.push(await held(one, requestOf('one', '2', exclusive('a'))))
    granted.push(await held(one, requestOf('one', '3', exclusive('b', 'c'))))
  }
  await other.operations.sweep()
  expect(granted).toHaveLength(2)
  for (const each of granted)
    expect(await one.operations.execute({ type: 'renew', ...each, lease: LEASE })).toBe(true)
})

test('a box that was idle for long does not take itself for dead', async () => {
  const [one, holder, second] = [world.box('one'), world.box('holder'), world.box('second')]
  await held(one, requestOf('one', '1', exclusive('z')))
  await passed(3 * LONG)
  await one.operations.sweep()
  const granted = await held(holder, requestOf('holder', '1', exclusive('a')))
  const request = requestOf('one', '2', exclusive('a'))
  await enqueue(one, request)
  await enqueue(second, requestOf('second', '1', exclusive('a')))
  const sign = { type: 'alive', session: 'one', requests: [request] } as const
  for (let time = 0; time < 8000; time += SIGN_INTERVAL) {
    await passed(SIGN_INTERVAL)
    await holder.operations.execute({ type: 'renew', ...granted, lease: LEASE })
    await one.operations.execute(sign)
  }
  await passed(LEASE + 1)
  await one.operations.execute(sign)
  expect(one.hints.map(({ type, session }) => `${type} ${session}`)).toContain('wake one')
})

test('each key of a dead set is freed, also when it is cleaned up long before the first key of the set', async () => {
  const [one, other] = [world.box('one'), world.box('other')]
  const { reads, texts } = world.entries
  // More sets than a box cleans up at once.
  const all = Array.from({ length: 70 }, (_, at) => ({ home: `a${at}`, key: `b${at}` }))
  for (const { home, key } of all) await held(one, requestOf('one', home, exclusive(home, key)))
  await passed(3 * LONG)
  const found = [...texts].sort(([a], [b]) => (a < b ? 1 : -1))
  texts.clear()
  for (const [key, text] of found) texts.set(key, text)
  const counted = reads.set.bind(reads)
  vi.spyOn(reads, 'set').mockImplementation((key, count) => {
    world.clock.advance(1)
    return counted(key, count)
  })
  await other.operations.sweep()
  for (const { home, key } of all) for (const each of [home, key]) expect(texts.get(each)).toContain('"n":0')
})

test('boxes that clean up delete the entries that a closed box has left, and read none of an open one', async () => {
  const [closed, open, sweeper] = [world.box('closed'), world.box('open'), world.box('sweeper')]
  const use = async (box: PromptBox, key: string): Promise<void> => {
    const granted = await held(box, {
      id: `x.${key}`,
      session: 'x',
      claims: exclusive(key),
      label: undefined,
    })
    await box.operations.execute({ type: 'release', ...granted })
  }
  const { reads, texts } = world.entries
  await use(closed, 'left')
  await closed.operations.leave()
  closed.operations.end()
  for (let minute = 0; minute < 6; minute++) {
    await use(open, `open ${minute}`)
    await passed(1000)
    reads.clear()
    await sweeper.operations.sweep()
    expect([...reads.keys()].filter(key => key.startsWith('open'))).toEqual([])
    await passed(59_000)
  }
  expect(texts.has('left')).toBe(false)
})

test('a box that cleans up alone deletes an entry of its own whose IDs have expired', async () => {
  const one = world.box('one')
  const key = 's/k'
  const retention = 120_000
  const id = { key, id: 'id' }
  const committed = await one.operations.execute({
    type: 'commit',
    guard: undefined,
    expect: [],
    writes: [],
    record: [id],
    retention,
    release: false,
  })
  expect(committed.state).toBe('committed')
  await passed(retention + 20_000)
  await passed(200_000)
  await one.operations.sweep()
  await passed(90_000)
  expect(world.entries.texts.has(key)).toBe(false)
})

test.each([
  { claims: exclusive('a'), written: 'a' },
  { claims: exclusive('a', 'b'), written: 'room sets' },
])('a request that is not granted is reported before it waits in the entry $written', async each => {
  const [one, other] = [world.box('one'), world.box('other')]
  await held(one, requestOf('one', '1', exclusive('a')))
  expect((await enqueue(other, requestOf('other', '0', each.claims), 0)).state).toBe('busy')
  world.entries.holdsBack = { box: 'other', key: each.written }
  const request = requestOf('other', '1', each.claims)
  const waiting = enqueue(other, request)
  await settled()
  expect(other.blocked).toContain(request.id)
  world.entries.letGo()
  expect((await waiting).state).toBe('queued')
  expect(one.blocked).toEqual([])
})

test('a session that is revoked is notified of each grant that it has lost', async () => {
  const [one, other] = [world.box('one'), world.box('other')]
  await held(one, requestOf('one', 'both', [...shared('a'), ...shared('b')]))
  await held(one, requestOf('one', 'single', shared('b')))
  expect(await other.operations.execute({ type: 'revoke', session: 'one' })).toBe(2)
  const lost = other.hints.flatMap(each => (each.type === 'lost' ? [each.id] : []))
  expect(lost.sort()).toEqual(['one.both', 'one.single'])
})

test('a waiting set whose box is silent is passed over by the box that has woken it', async () => {
  const [holder, dead, next] = [world.box('holder'), world.box('dead'), world.box('next')]
  const set = (name: string) => requestOf(name, '1', exclusive('a', 'b'))
  const granted = await held(holder, set('holder'))
  const second = requestOf('holder', '2', exclusive('a', 'b'))
  for (const [each, request] of [
    [holder, second],
    [dead, set('dead')],
    [next, set('next')],
  ] as const)
    expect((await enqueue(each, request)).state).toBe('queued')
  await holder.operations.execute({ type: 'release', ...granted })
  const checkIn = { type: 'checkIn', request: second, lease: LEASE, wait: LONG } as const
  expect((await holder.operations.execute(checkIn)).state).toBe('held')
  await settled()
  const [wake] = holder.hints.filter(each => each.type === 'wake' && each.session === 'dead')
  if (!wake) expect.fail('it was not woken')
  await passed(1001)
  await holder.operations.execute({ type: 'sweepExpired', keys: [wake.key] })
  expect(holder.hints.map(({ type, session }) => `${type} ${session}`)).toContain('wake next')
})
