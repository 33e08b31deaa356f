import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import type { Box, BoxLimiterOptions } from '../../src/index.js'
import { limitRequests, type Middleware } from '../../src/limits/http/index.js'
import { until } from '../../packages/conformance/src/time.js'
import { RedisPlace } from '../support/redis/place.js'
import type { RedisServer } from '../support/servers/redis.js'

const servers: Server[] = []

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close()
    server.closeAllConnections()
  }
})

/** Options of the limiters, by their policy while the engine is unavailable. */
const policies = {
  error: { limit: 100, per: '1h', onUnavailable: 'error' },
  closed: { limit: 100, per: '1h', onUnavailable: 'closed' },
  open: { limit: 1, per: '1h', onUnavailable: 'open' },
  share: { limit: 6, per: '1h', onUnavailable: 'share', shares: 3 },
} as const satisfies Record<string, BoxLimiterOptions>

type Policy = keyof typeof policies

/**
 * Starts a server with a path for each policy. Returns a function that requests a path and returns the response as
 * text.
 */
async function limitedServer(box: Box): Promise<(policy: Policy) => Promise<string>> {
  const middlewares = new Map<string, Middleware>()
  for (const [name, options] of Object.entries(policies)) {
    middlewares.set(`/${name}`, limitRequests(box.limiter(name, options)))
  }
  const server = createServer((request, response) =>
    middlewares.get(request.url!)!(request, response, error => response.end(error ? 'defect' : 'welcome')),
  )
  servers.push(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return async policy => {
    const answer = await fetch(`http://127.0.0.1:${port}/${policy}`)
    const told = answer.headers.get('ratelimit')?.replace(/;t=\d+/, '') ?? 'no limit told'
    const text = await answer.text()
    const { code = 'refused' } = answer.ok ? { code: text } : (JSON.parse(text) as { code?: string })
    return `${answer.status} ${code}, ${told}`
  }
}

/** Expects the responses for each policy while the engine is unavailable. */
async function meetTheOutage(request: (policy: Policy) => Promise<string>): Promise<void> {
  const unavailable = /^(503 UNAVAILABLE|504 INDETERMINATE), no limit told$/
  const [error, closed, open, ...shared] = await Promise.all([
    request('error'),
    request('closed'),
    request('open'),
    request('share'),
    request('share'),
    request('share'),
  ])
  expect(error).toMatch(unavailable)
  expect(closed).toMatch(unavailable)
  expect(open).toBe('200 welcome, no limit told')
  // This process has a share of two: a third of six.
  expect(shared.sort()).toEqual([
    '200 welcome, no limit told',
    '200 welcome, no limit told',
    '429 refused, no limit told',
  ])
  // A share holds for the whole outage. The limit of `open` in this process is one.
  expect(await request('open')).toBe('429 refused, no limit told')
  expect(await request('share')).toBe('429 refused, no limit told')
  expect(await request('error')).toMatch(unavailable)
}

async function meetTheEngine(request: (policy: Policy) => Promise<string>): Promise<void> {
  expect(await request('error')).toBe('200 welcome, "default";r=99')
  expect(await request('closed')).toBe('200 welcome, "default";r=99')
  expect(await request('open')).toBe('200 welcome, "default";r=0')
  expect(await request('open')).toBe('429 refused, "default";r=0')
  expect(await request('share')).toBe('200 welcome, "default";r=5')
}

/** Ways to lose the server, and to restore it. */
const OUTAGES: readonly [string, (server: RedisServer) => unknown, (server: RedisServer) => unknown][] = [
  ['is dead', server => server.kill(), server => server.start()],
  ['hangs', server => server.pause(), server => server.resume()],
]

test.each(OUTAGES)('requests are treated as onUnavailable says while Redis %s', async (_, begin, end) => {
  await using here = await RedisPlace.start()
  const request = await limitedServer(await here.box())
  await meetTheEngine(request)
  await begin(here.server)
  await meetTheOutage(request)
  await end(here.server)
  // A server that was killed has lost its counts. Requests during a pause may have been counted.
  for (const policy of ['error', 'closed', 'open', 'share'] as const) {
    await until('it is counted again', async () => (await request(policy)).includes('"default";r='))
  }
})
