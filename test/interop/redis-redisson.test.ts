import { afterAll, beforeAll, describe } from 'vitest'
import { startRedis, type RedisServer } from '../support/servers/redis.js'
import { rFairLock, rLock } from './client.js'
import { contests, meetings, type Place } from './meeting.js'

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
  contests(place, kind, 40, LIMIT)
})
