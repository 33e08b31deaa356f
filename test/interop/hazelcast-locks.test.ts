import { afterAll, expect, test } from 'vitest'
import { open } from '../../src/open.js'
import { startHazelcast, TEST_CLUSTER } from '../support/servers/hazelcast.js'
import { Client, javaMap } from './client.js'
import { meetAtHazelcast } from './hazelcast-meeting.js'
import { expectHandOvers, withOurs } from './meeting.js'

/** Maximum duration of a contest, in milliseconds. */
const LIMIT = 60_000
/**
 * Maximum wait, in milliseconds. A wait takes some milliseconds on an idle machine, and a longer one counts as
 * unbounded.
 */
const BOUND = 5000

const server = await startHazelcast()

afterAll(() => server.kill())

test('Signalbox and a Java program at the same key of an IMap are never inside at once', async () => {
  const wanted = withOurs([javaMap], 50)
  const result = await meetAtHazelcast(server, wanted, LIMIT)
  expect(result.overlaps).toEqual([])
  expectHandOvers(result, wanted)
})

test('a Java program and a process that always want a key wait for each other for a bounded time', async () => {
  const part = { name: 'busy', lease: 60_000, renew: true, retry: 5, hold: 1, pause: 0, excludes: true }
  await using java = await Client.start(javaMap, { ...part, url: `${server.address}/${TEST_CLUSTER}/shared` })
  await using box = await open(`hazelcast://${server.address}/${TEST_CLUSTER}?map=shared`)
  const over = new AbortController()
  let longest = 0
  const callers = Array.from({ length: 4 }, async () => {
    while (!over.signal.aborted) {
      const since = performance.now()
      await box.mutex(part.name).run(() => undefined)
      longest = Math.max(longest, performance.now() - since)
    }
  })
  for (let round = 0; round < 10; round++) {
    expect(await java.acquire(BOUND)).toBe(true)
    expect(await java.release()).toBe(true)
  }
  // From now on, the Java program also wants the key all the time.
  java.begin()
  const rounds = java.stays.length
  while (java.stays.length < rounds + 20) await new Promise(resolve => setTimeout(resolve, 10))
  await java.stop()
  over.abort()
  await Promise.all(callers)
  expect(longest).toBeLessThan(BOUND)
})
