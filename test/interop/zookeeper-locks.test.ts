import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startZooKeeper, type ZooKeeperServer } from '../servers/zookeeper.js'
import { curator, kazoo, signalbox, type Kind } from './client.js'
import { contest, type ContestResult } from './contest.js'
import { withOurs } from './meeting.js'

const KINDS = [curator, kazoo]
/** A contest that has not come to its end by then fails: milliseconds. */
const LIMIT = 60_000

let server: ZooKeeperServer

beforeAll(async () => {
  server = await startZooKeeper()
})

afterAll(() => server.kill())

/** Lets clients that want the same lock come in by turns. */
function meet(
  kinds: readonly Kind[],
  wanted: ReadonlyMap<string, number>,
  excludes = true,
): Promise<ContestResult> {
  const key: string = randomUUID()
  const part = (kind: Kind) => ({
    url: kind === signalbox ? `zookeeper://${server.address}/place?sessionTimeout=20s` : server.address,
    // Others name the node under which Signalbox keeps the queue of a key.
    name: kind === signalbox ? key : `/place/locks/${key}`,
    lease: 60_000,
    renew: true,
    retry: 5,
    hold: 1,
    pause: 10,
    excludes,
  })
  return contest({ clients: kinds.map(kind => [kind, part(kind)]), wanted, limit: LIMIT })
}

describe.each(KINDS.map(kind => [kind.kind, kind] as const))('Signalbox and %s', (_, kind) => {
  test('are never inside at once', async () => {
    const wanted = withOurs([kind], 40)
    const result = await meet([signalbox, signalbox, kind, kind], wanted)
    expect(result.overlaps).toEqual([])
    for (const [pair, times] of wanted)
      expect(result.handOvers.get(pair) ?? 0, pair).toBeGreaterThanOrEqual(times)
  })
})

test('without locks the same rounds are found to overlap', async () => {
  const result = await meet([signalbox, ...KINDS], withOurs(KINDS, 10), false)
  for (const { kind } of KINDS) {
    const between = result.overlaps.filter(pair => {
      const kinds = pair.map(stay => stay.kind)
      return kinds.includes(kind) && kinds.includes(signalbox.kind)
    })
    expect(between.length, kind).toBeGreaterThan(0)
  }
})
