import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Claim } from '../../../src/engine/claim.js'
import type { Granted, LockRequest } from '../../../src/engine/contract.js'
import { pass } from '../../support/passing.js'
import { exclusive, requestOf, settled, type PromptBox } from './prompt-entries.js'
import { PromptWorld } from './prompt-world.js'

/** Lease of all locks, in milliseconds. */
const LEASE = 6000
/** Interval of the renewals of a lease, in milliseconds. */
const PART = LEASE / 3
/** The key of the sign of the box `one`. */
const SIGN = 'room grants/one'

let world: PromptWorld

beforeEach(() => {
  world = new PromptWorld()
})
afterEach(() => {
  world.end()
})

function enqueue({ operations }: PromptBox, request: LockRequest, wait: number) {
  return operations.execute({ type: 'enqueue', request, lease: LEASE, wait })
}

async function held(by: PromptBox, request: LockRequest): Promise<Granted> {
  const status = await enqueue(by, request, 0)
  if (status.state !== 'held') expect.fail(`${request.id} is ${status.state}`)
  return { request, number: status.number }
}

function renew({ operations }: PromptBox, granted: Granted): Promise<boolean> {
  return operations.execute({ type: 'renew', ...granted, lease: LEASE })
}

/** Returns grants of the box `one`. Their second renewal has just renewed them by the sign of the box. */
async function heldForLong(one: PromptBox, ...claims: Claim[][]): Promise<Granted[]> {
  const granted = await Promise.all(claims.map((each, at) => held(one, requestOf('one', `${at}`, each))))
  for (let renewals = 0; renewals < 2; renewals++) {
    await passed(PART)
    expect(await Promise.all(granted.map(each => renew(one, each)))).not.toContain(false)
  }
  return granted
}

async function passed(time: number): Promise<void> {
  await pass(world.clock, time)
  await settled()
}

/** Creates a box with a waiting request, whose core sends signs of life. */
async function waiter(name: string, claims: readonly Claim[]) {
  const by = world.box(name)
  const request = requestOf(name, '1', claims)
  expect((await enqueue(by, request, Infinity)).state).toBe('queued')
  return {
    by,
    request,
    /** Sends a sign, and returns whether the request must check in. */
    async sign(): Promise<boolean> {
      const { due } = await by.operations.execute({ type: 'alive', session: name, requests: [request] })
      return due.length > 0
    },
  }
}

const shared = (key: string): Claim[] => [{ key, mode: 'shared' }]
const kinds = [
  { kind: 'exclusive', claims: exclusive('a') },
  { kind: 'shared', claims: shared('a') },
  { kind: 'set', claims: exclusive('a', 'b') },
]

test('grants that are held for long are renewed by one change of the sign of their box', async () => {
  const one = world.box('one')
  const claims = Array.from({ length: 100 }, (_, at) => exclusive(`key-${at}`))
  const granted = await heldForLong(one, ...claims, exclusive('x', 'y'), shared('z'))
  const before = new Map(world.entries.texts)
  for (let renewals = 1; renewals <= 5; renewals++) {
    await passed(PART)
    expect(await Promise.all(granted.map(each => renew(one, each)))).not.toContain(false)
  }
  const [sign, count] = JSON.parse(before.get(SIGN)!) as [number, number]
  expect(JSON.parse(world.entries.texts.get(SIGN)!)).toEqual([sign, count + 5])
  for (const [key, text] of before) if (key !== SIGN) expect(world.entries.texts.get(key)).toBe(text)
})

test.each(kinds)(
  'a $kind grant whose box is dead is free a lease after its last sign',
  async ({ claims }) => {
    await heldForLong(world.box('one'), claims)
    const at = world.clock.now()
    const { sign } = await waiter('other', exclusive('a'))
    while (world.clock.now() < at + LEASE - 500) {
      await passed(500)
      expect(await sign()).toBe(false)
    }
    await passed(500)
    // A sign starts the lookup of the entry of a set, and does not wait for it.
    await sign()
    await settled()
    expect(await sign()).toBe(true)
  },
)

test.each(kinds)(
  'a sign that arrives after another box has taken a $kind grant does not renew it',
  async each => {
    const one = world.box('one')
    const [granted] = await heldForLong(one, each.claims)
    const { sign } = await waiter('other', exclusive('a'))
    await passed(LEASE - 1)
    world.entries.holdsBack = { box: 'one', key: SIGN }
    const renewing = renew(one, granted!)
    await passed(1)
    await sign()
    await settled()
    expect(await sign()).toBe(true)
    world.entries.letGo()
    expect(await renewing).toBe(false)
  },
)

test.each(kinds)(
  'a box learns at its next renewal that a $kind grant was revoked, without a hint',
  async each => {
    const one = world.box('one')
    const [revoked, kept] = await heldForLong(one, each.claims, exclusive('z'))
    const { request, number } = revoked!
    const { key } = request.claims.at(-1)!
    expect(await world.box('other').operations.execute({ type: 'forceRelease', key, number })).toBe(true)
    const renewals = await Promise.all([renew(one, revoked!), renew(one, kept!)])
    expect(renewals).toEqual([false, true])
    await passed(PART)
    expect(await renew(one, kept!)).toBe(true)
  },
)

test.each(['forceRelease', 'revoke'] as const)(
  'a set that is lost by %s between its grant and the last reply is reported, and lost when its box asks',
  async how => {
    const [one, other] = [world.box('one'), world.box('other')]
    // Creates the entries of the set, so that a single change can grant it later.
    const before = await held(one, requestOf('one', 'before', exclusive('a', 'b')))
    await one.operations.execute({ type: 'release', ...before })
    world.entries.holdsBack = { box: 'one', key: 'b' }
    const request = requestOf('one', '1', exclusive('a', 'b'))
    const granting = enqueue(one, request, Infinity)
    await settled()
    const [report] = await other.operations.execute({ type: 'inspect', prefix: 'a', exact: true })
    expect(report?.phase).toBe('held')
    if (how === 'revoke') await other.operations.execute({ type: 'revoke', session: 'one' })
    else await other.operations.execute({ type: 'forceRelease', key: 'a', number: report!.number })
    expect(other.hints).toContainEqual({ type: 'lost', session: 'one', id: request.id, key: 'a' })
    world.entries.letGo()
    const status = await granting
    if (status.state === 'held') expect(await renew(one, { request, number: status.number })).toBe(false)
    else expect(status.state).toBe('gone')
  },
)

test('a grant is held until its deadline although others have ended the sign for another grant', async () => {
  const one = world.box('one')
  const [revoked] = await heldForLong(one, exclusive('z'), exclusive('a'))
  const at = world.clock.now()
  const { sign } = await waiter('first', exclusive('a'))
  await passed(PART)
  await world.box('other').operations.execute({ type: 'forceRelease', key: 'z', number: revoked!.number })
  const later = await waiter('later', shared('a'))
  while (world.clock.now() < at + LEASE - 500) {
    await passed(500)
    expect(await sign()).toBe(false)
    expect(await later.sign()).toBe(false)
  }
  // This box knew the sign before it ended, and sees that it was not sent again.
  await passed(501)
  expect(await sign()).toBe(true)
})

test('a grant is held until its deadline although its box has begun another sign', async () => {
  const one = world.box('one')
  const [granted] = await heldForLong(one, exclusive('a'), exclusive('z'))
  const at = world.clock.now()
  const { sign } = await waiter('other', exclusive('a'))
  await passed(PART)
  one.operations.forgetAll()
  await held(one, requestOf('one', 'new', exclusive('y'))).then(each => renew(one, each))
  while (world.clock.now() < at + LEASE - 100) {
    await passed(500)
    expect(await sign()).toBe(false)
  }
  expect(await renew(one, granted!)).toBe(true)
})

test('a grant that a hint says is lost is renewed in its entry', async () => {
  const one = world.box('one')
  const [granted] = await heldForLong(one, exclusive('a'))
  world.entries.texts.delete('a')
  one.operations.doubted(granted!.request.id)
  expect(await renew(one, granted!)).toBe(false)
})

test('a grant with another lease is renewed in its entry', async () => {
  const one = world.box('one')
  const [granted] = await heldForLong(one, exclusive('a'))
  const before = world.entries.texts.get('a')
  expect(await one.operations.execute({ type: 'renew', ...granted!, lease: 2 * LEASE })).toBe(true)
  expect(world.entries.texts.get('a')).not.toBe(before)
  const { sign } = await waiter('other', exclusive('a'))
  await passed(2 * LEASE - 1)
  expect(await sign()).toBe(false)
})

test('a grant that is asked for with the rest of its lease ends with that, although its box lives', async () => {
  const one = world.box('one')
  const [kept] = await heldForLong(one, exclusive('z'))
  const ending = await held(one, requestOf('one', 'ending', exclusive('a')))
  const { sign } = await waiter('other', exclusive('a'))
  await passed(PART)
  expect(await one.operations.execute({ type: 'renew', ...ending, lease: 2 * PART })).toBe(true)
  for (let time = 0; time < 2 * PART; time += PART) {
    expect(await sign()).toBe(false)
    expect(await renew(one, kept!)).toBe(true)
    await passed(PART)
  }
  expect(await sign()).toBe(true)
})

test('a grant whose sign was lost with its partition is renewed in its entry', async () => {
  const one = world.box('one')
  const [granted] = await heldForLong(one, exclusive('a'))
  const { sign } = await waiter('other', exclusive('a'))
  world.entries.texts.delete(SIGN)
  await passed(PART)
  expect(await sign()).toBe(false)
  expect(await renew(one, granted!)).toBe(true)
  expect(world.entries.texts.has(SIGN)).toBe(true)
  await passed(LEASE - 1)
  expect(await sign()).toBe(false)
})

test('a grant whose box has died, and whose sign was lost, is free a lease after others find that', async () => {
  await heldForLong(world.box('one'), exclusive('a'))
  world.entries.texts.delete(SIGN)
  const { sign } = await waiter('other', exclusive('a'))
  await passed(LEASE - 1)
  expect(await sign()).toBe(false)
  await passed(1)
  expect(await sign()).toBe(true)
})

test.each(kinds)(
  'a $kind grant whose box died long ago is free for a call that does not wait',
  async each => {
    await heldForLong(world.box('one'), each.claims)
    await passed(200_000)
    await held(world.box('other'), requestOf('other', '1', each.claims))
  },
)
