import { afterEach, expect, test } from 'vitest'
import type { LockRequest, RequestStatus } from '../../../src/engine/contract.js'
import { KeyOperations } from '../../../packages/hazelcast/src/key-operations.js'
import { exclusive, PromptEntries, requestOf, settled } from './prompt-entries.js'
import { PromptWorld } from './prompt-world.js'

const LEASE = 60_000

const opened: { end(): void }[] = []
afterEach(() => {
  for (const each of opened.splice(0)) each.end()
})

function boxes(...names: readonly string[]): readonly KeyOperations[] {
  const entries = new PromptEntries()
  const all = names.map(name => entries.box(KeyOperations, name).operations)
  opened.push(...all)
  return all
}

function enqueue(box: KeyOperations, request: LockRequest, wait = LEASE): Promise<RequestStatus> {
  return box.execute({ type: 'enqueue', request, lease: LEASE, wait })
}

function checkIn(box: KeyOperations, request: LockRequest): Promise<RequestStatus> {
  return box.execute({ type: 'checkIn', request, lease: LEASE, wait: LEASE })
}

async function release(box: KeyOperations, request: LockRequest, status: RequestStatus): Promise<void> {
  await box.execute({ type: 'release', request, number: status.state === 'held' ? status.number : 0 })
  await settled()
}

test.each([{ mode: 'shared' } as const, { mode: 'permits', permits: 1, max: 10 } as const])(
  'a set is granted beside one that waits for another key, if their claims on the common key agree: $mode',
  async mode => {
    const [holder, waiter, fresh] = boxes('holder', 'waiter', 'fresh')
    await enqueue(holder!, requestOf('holder', '1', exclusive('x')))
    const waiting = requestOf('waiter', '1', [{ key: 'a', ...mode }, ...exclusive('x')])
    expect(await enqueue(waiter!, waiting)).toMatchObject({ state: 'queued' })
    const beside = requestOf('fresh', '1', [{ key: 'a', ...mode }, ...exclusive('c')])
    expect(await enqueue(fresh!, beside, 0)).toMatchObject({ state: 'held' })
  },
)

test('a set that gives up keeps the place of the one behind it in the waiting room', async () => {
  const [holder, leaver, waiter, fresh] = boxes('holder', 'leaver', 'waiter', 'fresh')
  await enqueue(holder!, requestOf('holder', '1', exclusive('z')))
  const leaving = requestOf('leaver', '1', exclusive('a', 'z'))
  await enqueue(leaver!, leaving)
  await checkIn(leaver!, leaving)
  await enqueue(waiter!, requestOf('waiter', '1', exclusive('a', 'y')))
  await leaver!.execute({ type: 'cancel', request: leaving })
  await settled()
  const later = requestOf('fresh', '1', exclusive('a', 'd'))
  expect(await enqueue(fresh!, later)).toMatchObject({ state: 'queued' })
})

test('processes that each try once get a key for which only dead boxes wait', async () => {
  const world = new PromptWorld()
  opened.push(world)
  const [holder, standing, waiter] = ['holder', 'standing', 'waiter'].map(name => world.box(name).operations)
  const x = requestOf('holder', '1', exclusive('x'))
  const held = await enqueue(holder!, x)
  await enqueue(standing!, requestOf('standing', '1', exclusive('a', 'x')))
  await enqueue(waiter!, requestOf('waiter', '1', exclusive('a', 'y')))
  await release(holder!, x, held)
  standing!.end()
  waiter!.end()
  // Longer than the sessions of the dead boxes last.
  for (let passed = 0; passed < 400_000; passed += 500) {
    world.clock.advance(500)
    await settled()
  }
  const states: string[] = []
  for (let count = 0; count < 3; count++) {
    const box = world.box(`process ${count}`).operations
    const { state } = await enqueue(box, requestOf(`process ${count}`, '1', exclusive('a', 'y')), 0)
    states.push(state)
    box.end()
    world.clock.advance(1000)
    await settled()
  }
  expect(states).toContain('held')
})

test.each([
  { what: 'keeps its place there while its box sends signs, although its check-ins are late', signs: true },
  { what: 'loses its place there once its box sends neither signs nor check-ins', signs: false },
])('a set that waits in the waiting room $what', async ({ signs }) => {
  const world = new PromptWorld()
  opened.push(world)
  const [holder, first, second, third] = ['holder', 'first', 'second', 'third'].map(
    name => world.box(name).operations,
  )
  const terms = { lease: 1000, wait: LEASE }
  const [of1, of2, of3] = ['first', 'second', 'third'].map(name => requestOf(name, '1', exclusive('a', name)))
  const held = await enqueue(holder!, requestOf('holder', '1', exclusive('first')))
  expect(held.state).toBe('held')
  for (const [box, request] of [
    [first, of1],
    [second, of2],
    [third, of3],
  ] as const)
    expect((await box!.execute({ type: 'enqueue', request: request!, ...terms })).state).toBe('queued')
  // The box of the third set checks in. The box of the second set does not.
  for (let passed = 0; passed < 6000; passed += 500) {
    world.clock.advance(500)
    if (signs) await second!.execute({ type: 'alive', session: 'second', requests: [of2!] })
    await first!.execute({ type: 'checkIn', request: of1!, ...terms })
    await third!.execute({ type: 'checkIn', request: of3!, ...terms })
    await settled()
  }
  await first!.execute({ type: 'cancel', request: of1! })
  await settled()
  const next = await third!.execute({ type: 'checkIn', request: of3!, ...terms })
  expect(next.state).toBe(signs ? 'queued' : 'held')
})

test('a set that the waiting room has granted keeps that while its box sends signs, although the room is slow', async () => {
  const world = new PromptWorld()
  opened.push(world)
  const [holder, first, second] = ['holder', 'first', 'second'].map(name => world.box(name).operations)
  const terms = { lease: 1000, wait: LEASE }
  const [of1, of2] = ['first', 'second'].map(name => requestOf(name, '1', exclusive('a', name)))
  await enqueue(holder!, requestOf('holder', '1', exclusive('first')))
  await first!.execute({ type: 'enqueue', request: of1!, ...terms })
  await second!.execute({ type: 'enqueue', request: of2!, ...terms })
  world.entries.holdsBack = { box: 'first', key: 'room sets' }
  const late: Promise<RequestStatus>[] = []
  for (let passed = 0; passed < 2500; passed += 500) {
    world.clock.advance(500)
    late.push(first!.execute({ type: 'checkIn', request: of1!, ...terms }))
    await first!.execute({ type: 'alive', session: 'first', requests: [of1!] })
    await second!.execute({ type: 'checkIn', request: of2!, ...terms })
    await settled()
  }
  world.entries.letGo()
  const states = (await Promise.all(late)).map(({ state }) => state)
  expect(new Set(states)).toEqual(new Set(['queued']))
})

test.each(['gives up', 'is granted'])(
  'a set that %s, but cannot leave the waiting room, does not block its own box beyond its lease',
  async how => {
    const world = new PromptWorld()
    opened.push(world)
    const [holder, one] = ['holder', 'one'].map(name => world.box(name).operations)
    const x = requestOf('holder', '1', exclusive('x'))
    const held = await enqueue(holder!, x)
    const set = requestOf('one', 'set', exclusive('a', 'x'))
    expect((await enqueue(one!, set)).state).toBe('queued')
    await checkIn(one!, set)
    // The box sends no further sign, because nothing else waits.
    await one!.execute({ type: 'alive', session: 'one', requests: [set] })
    world.entries.holdsBack = { box: 'one', key: 'room sets' }
    await release(holder!, x, held)
    if (how === 'is granted') {
      const granted = await checkIn(one!, set)
      expect(granted.state).toBe('held')
      await release(one!, set, granted)
    } else one!.execute({ type: 'cancel', request: set }).catch(() => undefined)
    for (let passed = 0; passed < 20_000; passed += 250) {
      world.clock.advance(250)
      await settled()
    }
    world.entries.holdsBack = undefined
    expect((await enqueue(one!, requestOf('one', 'try', exclusive('a', 'x')), 0)).state).toBe('held')
  },
)
