import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startRedis, type RedisServer } from '../support/servers/redis.js'
import { rFairLock, rLock, signalbox } from './client.js'
import { meetByTurns, meetings, withOurs, type Place } from './meeting.js'

const KINDS = [rLock, rFairLock]
/** Maximum duration of a contest, in milliseconds. */
const LIMIT = 60_000

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})

afterAll(async () => {
  await server.stop()
})

function place(): Place {
  return { url: server.url, prefix: '', layout: 'redisson' }
}

describe.each(KINDS.map(kind => [kind.kind, kind] as const))('Signalbox and %s', (_, kind) => {
  meetings(place, kind)

  test('are never inside at once', async () => {
    const wanted = withOurs([kind], 40)
    const result = await meetByTurns(place(), [signalbox, signalbox, kind, kind], wanted, LIMIT)
    expect(result.overlaps).toEqual([])
    for (const [pair, times] of wanted)
      expect(result.handOvers.get(pair) ?? 0, pair).toBeGreaterThanOrEqual(times)
  })
})

test('without locks the same rounds are found to overlap', async () => {
  const manner = { excludes: false }
  const result = await meetByTurns(place(), [signalbox, ...KINDS], withOurs(KINDS, 10), LIMIT, manner)
  expect(result.overlaps.length).toBeGreaterThan(10)
  for (const { kind } of KINDS) {
    const between = result.overlaps.filter(pair => {
      const kinds = pair.map(stay => stay.kind)
      return kinds.includes(kind) && kinds.includes(signalbox.kind)
    })
    expect(between.length, kind).toBeGreaterThan(0)
  }
})
