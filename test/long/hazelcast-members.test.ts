import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'hazelcast-client'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { Box } from '../../src/box.js'
import { systemClock } from '../../src/base/clock.js'
import { HazelcastEngine } from '../../packages/hazelcast/src/hazelcast-engine.js'
import { parseHazelcastUrl } from '../../packages/hazelcast/src/hazelcast-url.js'
import { SignalboxError } from '../../src/base/errors.js'
import type { Grant } from '../../src/core/grant.js'
import { open } from '../../src/open.js'
import { pause, queued, soFar, until } from '../../packages/conformance/src/time.js'
import { intercepted } from '../support/hazelcast/intercepted.js'
import { startHazelcastCluster, TEST_CLUSTER, type HazelcastServer } from '../support/servers/hazelcast.js'
import { faultless, runTracker } from '../support/trains/run-tracker.js'

const KEYS = ['a', 'b', 'c', 'd', 'e', 'f']
const BOXES = 3
/** Number of tasks of each box that lock, and of tasks that count. */
const TASKS = 6
/** Lease of all locks, in milliseconds. It ends locks that remain from calls that a dying member interrupted. */
const LEASE = 3000
/**
 * The options of the run of the train tracker that its task names: worker processes, days of traffic, workers to kill.
 */
const NAMED_RUN = ['--processes', '4', '--days', '10', '--kill', '20']
/**
 * Maximum time of a run, in milliseconds. Members and workers that die at the same time make the others wait for
 * leases.
 */
const MAX_RUN = 5 * 60_000

let members: HazelcastServer[]

beforeAll(async () => {
  members = await startHazelcastCluster(3)
})

afterAll(async () => {
  for (const member of members) await member.kill()
})

/** Kills one member after another. Lets each one rejoin, and waits until all members have copies of everything. */
async function killEach(): Promise<void> {
  for (const member of members) {
    await pause(1000)
    await killAndRejoin(member)
  }
}

/**
 * Kills a member and lets it rejoin. Settles when all members have their copies again: an earlier loss of another
 * member could lose data.
 */
async function killAndRejoin(member: HazelcastServer): Promise<void> {
  await member.kill()
  await pause(2000)
  await member.rejoin(members.filter(one => one !== member))
  await untilSafe()
}

async function untilSafe(): Promise<void> {
  for (const member of members) while (!(await member.isSafe())) await pause(50)
}

/** Accepts an error that an operation may get while a member is missing, and throws any other error. */
function checkRefusal(error: unknown): void {
  if (
    error instanceof SignalboxError &&
    ['UNAVAILABLE', 'INDETERMINATE', 'LOST', 'TIMED_OUT'].includes(error.code)
  )
    return
  throw error
}

test('a member killed under load, each in turn: no two inside, no count lost, no lock left', async () => {
  const url = `hazelcast://${members.map(({ address }) => address).join()}/${TEST_CLUSTER}?map=killed`
  const boxes = await Promise.all(Array.from({ length: BOXES }, () => open(url)))
  const over = new AbortController()
  const inside = new Map<string, Grant>()
  const tokens = new Map<string, bigint>()
  const overlaps: string[] = []
  const counted = new Map(KEYS.map(key => [key, 0]))
  let sections = 0

  const section = (key: string, grant: Grant): void => {
    const before = inside.get(key)
    if (before && before.expiresIn() > 0) overlaps.push(`${key}: ${before.token} and ${grant.token}`)
    inside.set(key, grant)
    if (grant.token <= (tokens.get(key) ?? 0n))
      overlaps.push(`${key}: ${grant.token} after ${String(tokens.get(key))}`)
    tokens.set(key, grant.token)
    sections++
  }
  const lock = async (box: Box, index: number): Promise<void> => {
    for (let turn = index; !over.signal.aborted; turn++) {
      const keys = turn % 3 === 0 ? [KEYS[turn % 6]!, KEYS[(turn + 1) % 6]!] : [KEYS[turn % 6]!]
      try {
        await box.mutex(...keys).run(
          async grant => {
            for (const key of keys) section(key, grant)
            await pause(1)
            for (const key of keys) if (inside.get(key) === grant) inside.delete(key)
          },
          { lease: LEASE, wait: 10_000 },
        )
      } catch (error) {
        checkRefusal(error)
      }
    }
  }
  const count = async (box: Box, index: number): Promise<void> => {
    for (let turn = index; !over.signal.aborted; turn++) {
      const key = KEYS[turn % 6]!
      const id = randomUUID()
      for (let isDone = false; !isDone;) {
        try {
          await box
            .store('counts')
            .transaction(
              [key],
              transaction => transaction.put(key, (transaction.get<number>(key) ?? 0) + 1),
              { id, lease: LEASE, wait: 10_000 },
            )
          isDone = true
        } catch (error) {
          checkRefusal(error)
        }
      }
      counted.set(key, counted.get(key)! + 1)
    }
  }
  const tasks = boxes.flatMap(box =>
    Array.from({ length: TASKS }, (_, index) => [lock(box, index), count(box, index)]).flat(),
  )
  await Promise.race([killEach(), Promise.all(tasks)])
  await pause(500)
  over.abort()
  await Promise.all(tasks)
  expect(overlaps).toEqual([])
  for (const key of KEYS) {
    expect((await boxes[0]!.store('counts').get(key))!.value, key).toBe(counted.get(key))
    for (const box of boxes) await box.mutex(key).run(() => undefined, { wait: 2 * LEASE })
  }
  expect(sections).toBeGreaterThan(100)
  for (const box of boxes) await box.close()
})

test('trains on three members that are killed in turn and join again: nothing lost, counters right', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-trains-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const url = `hazelcast://${members.map(({ address }) => address).join()}/${TEST_CLUSTER}?map=trains`
  // The locks of a killed worker may block the others until its lease ends.
  const run = runTracker(folder, url, [...NAMED_RUN, '--lease', '3s'], { limit: MAX_RUN })
  const over = new AbortController()
  const isOver = run.then(
    () => over.abort(),
    () => over.abort(),
  )
  let killed = 0
  await pause(1500)
  for (; !over.signal.aborted; killed++) {
    await killAndRejoin(members[killed % members.length]!)
    await Promise.race([isOver, pause(1000)])
  }
  const { status, output, report } = await run
  expect(status, output).toBe(0)
  expect(report).toMatchObject(faultless(10))
  expect(report.kills).toHaveLength(20)
  expect(killed).toBeGreaterThanOrEqual(members.length)
})

test('a box that is opened while a member ends is open in time', async () => {
  const url = `hazelcast://${members.map(({ address }) => address).join()}/${TEST_CLUSTER}?map=opened`
  for (let round = 0; round < 6; round++) {
    const member = members[round % members.length]!
    const opened: number[] = []
    const since = performance.now()
    const opening = Promise.all(
      Array.from({ length: 5 }, async (_, index) => {
        await pause(index * 80)
        const box = await open(url)
        opened.push(performance.now() - since)
        await box.close()
      }),
    )
    opening.catch(() => undefined)
    await pause(60 * round)
    await member.kill()
    await opening
    // Covers the timeouts of the client and of its calls to a dead member, with time to spare.
    expect(Math.max(...opened)).toBeLessThan(30_000)
    await member.rejoin(members.filter(one => one !== member))
    await untilSafe()
  }
})

/** Opens a client of the cluster, as another program would. */
async function clientOf(some: readonly HazelcastServer[]): Promise<Client> {
  const client = await Client.newHazelcastClient({
    clusterName: TEST_CLUSTER,
    network: { clusterMembers: some.map(({ address }) => address) },
    properties: { 'hazelcast.logging.level': 'OFF' },
  })
  onTestFinished(() => client.shutdown())
  return client
}

/** Returns keys whose partitions belong to one member, and that member. */
async function keysOfOne(client: Client, count: number): Promise<{ keys: string[]; owner: HazelcastServer }> {
  const partitions = client.getPartitionService()
  // The first request assigns the partitions to members, and the client learns of them later.
  await (await client.getMap('idle')).size()
  await vi.waitUntil(() => partitions.getPartitionOwner(0) as unknown, { timeout: 20_000 })
  const keysOf = new Map<string, string[]>()
  for (let index = 0; ; index++) {
    const key = `key ${index}`
    const owner = partitions.getPartitionOwner(partitions.getPartitionId(key)).toString()
    const keys = [...(keysOf.get(owner) ?? []), key]
    keysOf.set(owner, keys)
    if (keys.length < count) continue
    const { address } = client
      .getCluster()
      .getMembers()
      .find(({ uuid }) => uuid.toString() === owner)!
    return { keys, owner: members.find(({ port }) => port === address.port)! }
  }
}

test('holder, waiter and lease outlive the member with the keys, and tokens rise', async () => {
  const url = `hazelcast://${members.map(({ address }) => address).join()}/${TEST_CLUSTER}?map=idle`
  const client = await clientOf(members)
  const map = await client.getMap('idle')
  const { keys, owner } = await keysOfOne(client, 3)
  const [held, wanted, leased] = keys as [string, string, string]
  await using box = await open(url)
  await using other = await open(url)
  const grant = await box.mutex(held).acquire({ lease: '10s' })
  expect(await map.tryLock(wanted, 0, 120_000)).toBe(true)
  const lockedAt = performance.now()
  expect(await map.tryLock(leased, 0, 12_000)).toBe(true)
  const waiting = box.mutex(wanted).acquire({ wait: 60_000 })
  const outliving = other
    .mutex(leased)
    .acquire({ wait: 60_000 })
    .then(next => {
      // A member may end a lease up to a second early.
      expect(performance.now() - lockedAt).toBeGreaterThan(11_000)
      return next.release()
    })
  // By then both waiters are parked on the member.
  await pause(1500)
  await owner.kill()
  await pause(11_000)
  grant.assertHeld()
  expect(await map.tryLock(held, 0)).toBe(false)
  expect(await soFar(waiting)).toBe('pending')
  await map.unlock(wanted)
  await (await waiting).release()
  await outliving
  await grant.release()
  // The next grant continues from the number that the other members have a copy of, even if the clock was set back.
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 3_600_000 })
  try {
    await using late = await open(url)
    expect(await late.mutex(held).run(({ token }) => token)).toBeGreaterThan(grant.token)
  } finally {
    vi.useRealTimers()
  }
  await owner.rejoin(members.filter(one => one !== owner))
  await untilSafe()
})

test('hints that a member can not send, because its connection was lost, are not missed', async () => {
  const url = `hazelcast://${members.map(({ address }) => address).join()}/${TEST_CLUSTER}?map=untold`
  let client!: Client
  const clientPackage = intercepted(
    ({ send }) => send(),
    started => (client = started),
  )
  const engine = new HazelcastEngine(parseHazelcastUrl(url), clientPackage, systemClock)
  await using box = await Box.join(engine, systemClock)
  await using other = await open(url)
  const seen: unknown[] = []
  const over = new AbortController()
  const watching = (async () => {
    for await (const entry of box.store('s').watch('key', over.signal)) seen.push(entry?.value)
  })()
  await until('it is watched', () => seen.length === 1)
  const inTheWay = await other.mutex('wanted').acquire()
  // The waiter checks by itself only once in two thirds of its lease.
  const waiting = box.mutex('wanted').acquire({ lease: '10m', wait: '10m' })
  await queued(other, 'wanted', 1)

  const partitions = client.getPartitionService()
  const owner = partitions.getPartitionOwner(partitions.getPartitionId('wanted'))
  const { connectionRegistry } = client as unknown as {
    connectionRegistry: { getConnection(member: unknown): { close(reason: string): void } | undefined }
  }
  connectionRegistry.getConnection(owner)!.close('by the test')
  await Promise.all([inTheWay.release(), other.store('s').put('key', 1)])
  await until('it is told', () => seen.includes(1))
  await (await waiting).release()
  over.abort()
  await watching
})

test('a split cluster grants a lock twice, and a resource that checks tokens refuses the older grant', async () => {
  const halves = await startHazelcastCluster(2, {
    properties: { 'hazelcast.max.no.heartbeat.seconds': '5', 'hazelcast.heartbeat.interval.seconds': '1' },
  })
  onTestFinished(async () => {
    for (const half of halves) await half.kill()
  })
  const [first, second] = halves as [HazelcastServer, HazelcastServer]
  const alone = (half: HazelcastServer) =>
    vi.waitUntil(async () => (await half.clusterSize().catch(() => 0)) === 1, {
      timeout: 60_000,
      interval: 100,
    })
  first.pause()
  await alone(second)
  first.resume()
  await alone(first)
  const boxOn = async ({ address }: HazelcastServer): Promise<Box> => {
    const network = { clusterMembers: [address], smartRouting: false }
    const box = await open({ hazelcast: { clusterName: TEST_CLUSTER, network } })
    onTestFinished(() => box.close())
    return box
  }
  const boxes = [await boxOn(first), await boxOn(second)] as const
  const older = await boxes[0].mutex('key').acquire({ lease: '5m' })
  const newer = await boxes[1].mutex('key').acquire({ lease: '5m' })
  for (const grant of [older, newer]) grant.assertHeld()
  let fence = 0n
  const writes = ({ token }: Grant): boolean => {
    if (token < fence) return false
    fence = token
    return true
  }
  expect([writes(older), writes(newer), writes(older)]).toEqual([true, true, false])
  // Each part continues with its own state. When the parts merge, the cluster drops one of the two values.
  await boxes[0].store('s').put('value', 1)
  expect(await boxes[1].store('s').get('value')).toBeUndefined()
})
