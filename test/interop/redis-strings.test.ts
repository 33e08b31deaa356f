import { afterAll, describe, expect, test } from 'vitest'
import { startRedis } from '../support/servers/redis.js'
import { redisPy, redisSemaphore, redlock, redsync, signalbox, type Kind } from './client.js'
import { contests, meetByTurns, meetings, withOurs, type Place } from './meeting.js'

const KINDS = [redisPy, redsync, redlock, redisSemaphore]
/** Maximum duration of a contest, in milliseconds. */
const LIMIT = 60_000

const server = await startRedis()

afterAll(() => server.stop())

function place(kinds: readonly Kind[]): Place {
  // With this prefix, Signalbox uses the same keys as redis-semaphore.
  return { url: server.url, prefix: kinds.includes(redisSemaphore) ? 'mutex:' : '', layout: 'string' }
}

describe.each(KINDS.map(kind => [kind.kind, kind] as const))('Signalbox and %s', (_, kind) => {
  meetings(() => place([kind]), kind)
  contests(() => place([kind]), kind, 40, LIMIT)
})

test('without locks the same rounds are found to overlap', async () => {
  const manner = { excludes: false }
  const result = await meetByTurns(place(KINDS), [signalbox, ...KINDS], withOurs(KINDS, 10), LIMIT, manner)
  expect(result.overlaps.length).toBeGreaterThan(10)
  for (const { kind } of KINDS) {
    const between = result.overlaps.filter(pair => {
      const kinds = pair.map(stay => stay.kind)
      return kinds.includes(kind) && kinds.includes(signalbox.kind)
    })
    expect(between.length, kind).toBeGreaterThan(0)
  }
})
