import { afterAll, describe } from 'vitest'
import { startRedis } from '../support/servers/redis.js'
import { rFairLock, rLock } from './client.js'
import { contests, meetings, type Place } from './meeting.js'

const KINDS = [rLock, rFairLock]
/** Maximum duration of a contest, in milliseconds. */
const LIMIT = 60_000

const server = await startRedis()

afterAll(() => server.stop())

function place(): Place {
  return { url: server.url, prefix: '', layout: 'redisson' }
}

describe.each(KINDS.map(kind => [kind.kind, kind] as const))('Signalbox and %s', (_, kind) => {
  meetings(place, kind)
  contests(place, kind, 40, LIMIT)
})
