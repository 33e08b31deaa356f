import { expect, test } from 'vitest'
import { curator, kazoo, kazooAsItIs, ourReader, ourWriter, signalbox } from '../interop/client.js'
import { expectHandOvers, withOurs } from '../interop/meeting.js'
import {
  betweenSides,
  KEEPING,
  meetAtZooKeeper,
  ofOurs,
  readWriteLocks,
  sharedWithOurs,
} from '../interop/zookeeper-meeting.js'
import { startZooKeeper } from '../support/servers/zookeeper.js'

const HAND_OVERS = 1000
const LIMIT = 600_000

test.each([curator, kazoo].map(kind => [kind.kind, kind] as const))(
  'a thousand hand-overs between Signalbox and %s, each way',
  async (_, kind) => {
    await using server = await startZooKeeper(KEEPING)
    const wanted = withOurs([kind], HAND_OVERS)
    const result = await meetAtZooKeeper(server, [signalbox, signalbox, kind, kind], wanted, LIMIT)
    expect(result.overlaps).toEqual([])
    expectHandOvers(result, wanted)
  },
)

test('a thousand hand-overs between Signalbox with a bridge and both others as they are, each way', async () => {
  await using server = await startZooKeeper(KEEPING)
  const kinds = [curator, kazooAsItIs]
  const wanted = withOurs(kinds, HAND_OVERS)
  const clients = [signalbox, signalbox, ...kinds]
  const result = await meetAtZooKeeper(server, clients, wanted, LIMIT, { bridge: true })
  expect(ofOurs(result)).toEqual([])
  expect(result.overlaps.length).toBeGreaterThan(0)
  expectHandOvers(result, wanted)
})

test.each(readWriteLocks)(
  'a thousand hand-overs each way between the read-write locks of Signalbox with a bridge and $library',
  async ({ reader, writer }) => {
    await using server = await startZooKeeper(KEEPING)
    const wanted = betweenSides([reader, writer], HAND_OVERS)
    const clients = [ourReader, ourWriter, reader, writer]
    const result = await meetAtZooKeeper(server, clients, wanted, LIMIT, { bridge: true })
    expect(ofOurs(result)).toEqual([])
    expect(sharedWithOurs(result)).toBeGreaterThan(0)
    expectHandOvers(result, wanted)
  },
)
