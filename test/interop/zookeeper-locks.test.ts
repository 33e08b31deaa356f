import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startZooKeeper, type ZooKeeperServer } from '../servers/zookeeper.js'
import { curator, kazoo, kazooAsItIs, signalbox } from './client.js'
import { withOurs } from './meeting.js'
import { KEEPING, meetAtZooKeeper, ofOurs } from './zookeeper-meeting.js'

const KINDS = [curator, kazoo]
/** A contest that has not come to its end by then fails: milliseconds. */
const LIMIT = 60_000

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

test('without a bridge, kazoo as it is does not see Signalbox', async () => {
  const clients = [signalbox, signalbox, kazooAsItIs, kazooAsItIs]
  const result = await meetAtZooKeeper(server, clients, withOurs([kazooAsItIs], 10), LIMIT)
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
