import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import express from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'
import { parseList } from 'structured-headers'
import { afterEach, describe, expect, test } from 'vitest'
import { Box } from '../../../../src/box.js'
import { systemClock } from '../../../../src/base/clock.js'
import { FaultInjectingEngine } from '../../../../packages/conformance/src/fault-injecting-engine.js'
import { pause } from '../../../../packages/conformance/src/time.js'
import { MemoryEngine, MemorySpace } from '../../../../src/engines/memory/memory-engine.js'
import type { BoxLimiterOptions } from '../../../../src/limits/remote/box-limiter-options.js'
import {
  limitFastify,
  limitHono,
  limitRequests,
  type KeyedRequestLimiter,
  type RequestLimiter,
} from '../../../../src/limits/http/index.js'
import { joinLimiter, limiter, sharedLimiter } from '../../../../src/limits/index.js'

const ended: (() => unknown)[] = []

afterEach(async () => {
  for (const end of ended.splice(0)) await end()
})

const LIMIT = 30
const OPTIONS = { limit: LIMIT, per: '1h' } as const
const key = (): string => 'anna'

/** Creates a limiter of a box whose engine takes 10 ms in each direction. */
async function distant(options: Partial<BoxLimiterOptions> = {}): Promise<KeyedRequestLimiter> {
  const engine = new FaultInjectingEngine(
    new MemoryEngine('memory:test', new MemorySpace(systemClock), systemClock),
  )
  engine.interceptReserve = async (_, execute) => {
    await pause(10)
    const answer = await execute()
    await pause(10)
    return answer
  }
  const box = await Box.join(engine, systemClock)
  ended.push(() => box.close())
  return box.limiter('api', { ...OPTIONS, ...options } as BoxLimiterOptions)
}

/** Limiters of requests: by key, or one for all requests together. */
const limiters: Record<
  string,
  () => Promise<{ limiter: KeyedRequestLimiter } | { limiter: RequestLimiter }>
> = {
  'of a thread': async () => ({ limiter: limiter(OPTIONS) }),
  'of a thread, evenly spaced': async () => ({ limiter: limiter({ ...OPTIONS, window: 'smooth' }) }),
  'of a thread, with a concurrency': async () => ({ limiter: limiter({ ...OPTIONS, concurrency: 5 }) }),
  'of threads': async () => {
    const one = sharedLimiter(OPTIONS)
    const other = joinLimiter(one.handle)
    let turn = 0
    return { limiter: { decide: () => (turn++ % 2 === 0 ? one : other).decide() } }
  },
  'of a box': async () => ({ limiter: await distant() }),
  'of a box, that fetches several': async () => ({ limiter: await distant({ batch: 8 }) }),
  'of a box, with a concurrency': async () => ({ limiter: await distant({ concurrency: 5 }) }),
}

type Start = (limiter: KeyedRequestLimiter | RequestLimiter) => Promise<string>

async function addressOf(server: Server): Promise<string> {
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening')
  ended.push(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** By framework: starts a server with limited requests, and returns its address. */
const frameworks: Record<string, Start> = {
  'node:http': async own => {
    const limited = limitRequests(own)
    return addressOf(createServer((request, response) => limited(request, response, () => response.end())))
  },
  'node:http by key': async own => {
    const limited = 'key' in own ? limitRequests(own, { key }) : limitRequests(own)
    return addressOf(createServer((request, response) => limited(request, response, () => response.end())))
  },
  express: async own => {
    const app = express()
    app.use(limitRequests(own))
    app.get('/', (_request, response) => void response.send('welcome'))
    return addressOf(createServer(app))
  },
  fastify: async own => {
    const app = Fastify()
    app.addHook('onRequest', limitFastify(own))
    app.get('/', async () => 'welcome')
    await app.listen({ port: 0, host: '127.0.0.1' })
    return addressOf(app.server)
  },
  hono: async own => {
    const app = new Hono()
    app.use(limitHono(own))
    app.get('/', context => context.text('welcome'))
    return addressOf(createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false }) as Server)
  },
}

/** The status and the rate-limit fields of a response. */
interface Told {
  readonly status: number
  readonly r: number
  readonly t: number
  readonly retryAfter: number | undefined
}

async function ask(url: string): Promise<Told> {
  const { status, headers } = await fetch(url)
  const [[, parameters]] = parseList(headers.get('ratelimit')!) as [ReturnType<typeof parseList>[0]]
  const retry = headers.get('retry-after')
  const [r, t] = ['r', 't'].map(name => parameters.get(name) as number) as [number, number]
  return { status, r, t, retryAfter: retry === null ? undefined : Number(retry) }
}

describe.each(Object.entries(limiters))(
  'many requests at once, limited by a limiter %s',
  (_limiter, make) => {
    test.each(Object.entries(frameworks))('meet one decision each on %s', async (_framework, start) => {
      const url = await start((await make()).limiter)
      const answers = await Promise.all(Array.from({ length: 2 * LIMIT }, () => ask(url)))
      const refused = answers.filter(({ status }) => status === 429)
      const admitted = answers.filter(({ status }) => status === 200)
      expect(refused.length + admitted.length).toBe(2 * LIMIT)
      expect(admitted.length).toBeLessThanOrEqual(LIMIT)
      expect(admitted.length).toBeGreaterThan(0)
      for (const { r, t, retryAfter } of refused) {
        expect({ r, t, retryAfter }).toEqual({ r: 0, t: retryAfter, retryAfter })
        expect(retryAfter).toBeGreaterThanOrEqual(1)
      }
      // No admitted response reports more remaining permits than were left when it was admitted.
      const left = admitted.map(({ r }) => r).sort((one, other) => other - one)
      for (const [before, r] of left.entries()) expect(r).toBeLessThan(LIMIT - before)
      for (const { t, retryAfter } of admitted) {
        expect(retryAfter).toBeUndefined()
        expect(t).toBeGreaterThanOrEqual(1)
      }
    })
  },
)
