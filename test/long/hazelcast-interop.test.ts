import { expect, test } from 'vitest'
import { javaMap } from '../interop/client.js'
import { meetAtHazelcast } from '../interop/hazelcast-meeting.js'
import { expectHandOvers, withOurs } from '../interop/meeting.js'
import { startHazelcast } from '../support/servers/hazelcast.js'

const HAND_OVERS = 1000
const LIMIT = 300_000

test('a thousand hand-overs between Signalbox and a Java program, each way', async () => {
  await using server = await startHazelcast()
  const wanted = withOurs([javaMap], HAND_OVERS)
  const result = await meetAtHazelcast(server, wanted, LIMIT)
  expect(result.overlaps).toEqual([])
  expectHandOvers(result, wanted)
})
