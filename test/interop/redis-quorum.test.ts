import { afterAll, describe } from 'vitest'
import { quorumUrl } from '../support/servers/quorum.js'
import { startRedisServers } from '../support/servers/redis.js'
import { redlock, redsync } from './client.js'
import { contests, meetings, type Place } from './meeting.js'

/** Maximum duration of a contest, in milliseconds. */
const LIMIT = 100_000

const servers = await startRedisServers(3)

afterAll(() => Promise.all(servers.map(server => server.stop())))

const place = (): Place => ({ url: quorumUrl(servers), prefix: '', layout: 'string' })

describe.each([
  [redlock.kind, redlock],
  [redsync.kind, redsync],
] as const)('Signalbox and %s over the same three servers', (_, kind) => {
  meetings(place, kind)
  // Clients that retry immediately would split the votes again and again.
  contests(place, kind, 20, LIMIT, { retry: 50 })
})
