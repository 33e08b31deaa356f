import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startZooKeeper, type ZooKeeperServer } from '../servers/zookeeper.js'
import { open } from '../../src/index.js'
import { Client, curator, kazoo, kazooAsItIs, kazooReader, kazooWriter, signalbox } from './client.js'
import { withOurs } from './meeting.js'
import { KEEPING, meetAtZooKeeper, ofOurs, partOf } from './zookeeper-meeting.js'

const KINDS = [curator, kazoo]
/** A contest that has not come to its end by then fails: milliseconds. */
const LIMIT = 60_000
/** How long to wait for what must come, and for what must not: milliseconds. */
const PATIENT = 30_000
const IMPATIENT = 100

let server: ZooKeeperServer

beforeAll(async () => {
  server = await startZooKeeper(KEEPING)
})

afterAll(() => server.kill())

describe.each(KINDS.map(kind => [kind.kind, kind] as const))('Signalbox and %s', (_, kind) => {
  test('are never inside at once', async () => {
    const wanted = withOurs([kind], 40)
    const result = await meetAtZooKeeper(server, [signalbox, signalbox, kind, kind], wanted, LIMIT)
    expect(result.overlaps).toEqual([])
    for (const [pair, times] of wanted)
      expect(result.handOvers.get(pair) ?? 0, pair).toBeGreaterThanOrEqual(times)
  })
})

test('with a bridge, Signalbox is never inside with kazoo as it is or with Curator, who do not see each other', async () => {
  const kinds = [curator, kazooAsItIs]
  const wanted = withOurs(kinds, 40)
  const clients = [signalbox, signalbox, ...kinds]
  const result = await meetAtZooKeeper(server, clients, wanted, LIMIT, { bridge: true })
  expect(ofOurs(result)).toEqual([])
  expect(result.overlaps.length).toBeGreaterThan(0)
  for (const [pair, times] of wanted)
    expect(result.handOvers.get(pair) ?? 0, pair).toBeGreaterThanOrEqual(times)
})

test.each([
  // A Lock of kazoo sees no readers, kazoo's own neither.
  [kazooAsItIs, { keptOutBy: ['mutex', 'permits'], keepsOut: ['mutex', 'read', 'permits'] }],
  [kazooWriter, { keptOutBy: ['mutex', 'read', 'permits'], keepsOut: ['mutex', 'read', 'permits'] }],
  [kazooReader, { keptOutBy: ['mutex', 'permits'], keepsOut: ['mutex', 'permits'] }],
])('with a bridge, each claim excludes $kind as far as it should', async (kind, { keptOutBy, keepsOut }) => {
  const { address } = server
  await using box = await open(`zookeeper://${address}/place?bridge=true`)
  const key: string = randomUUID()
  await using theirs = await Client.start(kind, partOf(address, key))
  const claims = {
    mutex: box.mutex(key),
    read: box.readWriteLock(key).read,
    permits: box.semaphore(key, { permits: 2 }),
  }
  for (const [name, lock] of Object.entries(claims)) {
    const grant = await lock.acquire()
    const isOut = keptOutBy.includes(name)
    expect(await theirs.acquire(isOut ? IMPATIENT : PATIENT), name).toBe(!isOut)
    if (isOut) {
      const turn = theirs.acquire(PATIENT)
      await grant.release()
      expect(await turn).toBe(true)
    } else await grant.release()
    const tried = await lock.tryAcquire()
    expect(tried === undefined, name).toBe(keepsOut.includes(name))
    await tried?.release()
    const turn = tried ? undefined : lock.acquire({ wait: PATIENT })
    await theirs.release()
    await (await turn)?.release()
  }
})

test('without a bridge, kazoo as it is does not see Signalbox', async () => {
  const clients = [signalbox, signalbox, kazooAsItIs, kazooAsItIs]
  const result = await meetAtZooKeeper(server, clients, withOurs([kazooAsItIs], 40), LIMIT)
  expect(ofOurs(result).length).toBeGreaterThan(0)
})

test('without locks the same rounds are found to overlap', async () => {
  const result = await meetAtZooKeeper(server, [signalbox, ...KINDS], withOurs(KINDS, 10), LIMIT, {
    excludes: false,
  })
  for (const { kind } of KINDS) {
    const between = result.overlaps.filter(pair => {
      const kinds = pair.map(stay => stay.kind)
      return kinds.includes(kind) && kinds.includes(signalbox.kind)
    })
    expect(between.length, kind).toBeGreaterThan(0)
  }
})
