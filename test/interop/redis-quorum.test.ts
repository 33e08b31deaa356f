import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { quorumUrl } from '../support/servers/quorum.js'
import { startRedisServers, type RedisServer } from '../support/servers/redis.js'
import { redlock, redsync, signalbox } from './client.js'
import { meetByTurns, meetings, withOurs, type Place } from './meeting.js'

/** Maximum duration of a contest, in milliseconds. */
const LIMIT = 100_000

let servers: RedisServer[]

beforeAll(async () => {
  servers = await startRedisServers(3)
})

afterAll(async () => {
  await Promise.all(servers.map(server => server.stop()))
})

const place = (): Place => ({ url: quorumUrl(servers), prefix: '', layout: 'string' })

describe.each([
  [redlock.kind, redlock],
  [redsync.kind, redsync],
] as const)('Signalbox and %s over the same three servers', (_, kind) => {
  const times = 20
  meetings(place, kind)

  test('are never inside at once', async () => {
    const wanted = withOurs([kind], times)
    // Clients that retry immediately would split the votes again and again.
    const manner = { retry: 50 }
    const result = await meetByTurns(place(), [signalbox, signalbox, kind, kind], wanted, LIMIT, manner)
    expect(result.overlaps).toEqual([])
    for (const [pair] of wanted) expect(result.handOvers.get(pair) ?? 0, pair).toBeGreaterThanOrEqual(times)
  })
})
