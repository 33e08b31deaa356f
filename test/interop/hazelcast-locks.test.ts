import { afterAll, beforeAll, expect, test } from 'vitest'
import { startHazelcast, type HazelcastServer } from '../servers/hazelcast.js'
import { javaMap, signalbox } from './client.js'
import { meetAtHazelcast } from './hazelcast-meeting.js'
import { withOurs } from './meeting.js'

/** A contest that has not come to its end by then fails: milliseconds. */
const LIMIT = 60_000

let server: HazelcastServer

beforeAll(async () => {
  server = await startHazelcast()
})

afterAll(() => server.kill())

test('Signalbox and a Java program at the same key of an IMap are never inside at once', async () => {
  const wanted = withOurs([javaMap], 50)
  const result = await meetAtHazelcast(server, wanted, LIMIT)
  expect(result.overlaps).toEqual([])
  for (const [pair, times] of wanted)
    expect(result.handOvers.get(pair) ?? 0, pair).toBeGreaterThanOrEqual(times)
})

test('without locks the same rounds are found to overlap', async () => {
  const result = await meetAtHazelcast(server, withOurs([javaMap], 10), LIMIT, false)
  const between = result.overlaps.filter(pair => {
    const kinds = pair.map(stay => stay.kind)
    return kinds.includes(javaMap.kind) && kinds.includes(signalbox.kind)
  })
  expect(between.length).toBeGreaterThan(0)
})
