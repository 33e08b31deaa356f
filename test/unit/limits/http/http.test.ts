import { EventEmitter, once } from 'node:events'
import { createServer, get, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { connect, constants, createServer as createHttp2Server, type Http2Server } from 'node:http2'
import { connect as connectSocket, type AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { createAdaptorServer } from '@hono/node-server'
import express from 'express'
import Fastify, { type FastifyRequest } from 'fastify'
import { Hono } from 'hono'
import { parseList } from 'structured-headers'
import { afterEach, describe, expect, expectTypeOf, onTestFinished, test, vi } from 'vitest'
import { open, type BoxLimiter } from '../../../../src/index.js'
import {
  limitFastify,
  limitFetch,
  limitHono,
  limitRequests,
  type FastifyRequestLike,
  type HonoContextLike,
  type LimitFetchOptions,
  type RequestLimiter,
} from '../../../../src/limits/http/index.js'
import { limiter, VirtualClock, type LocalLimiter } from '../../../../src/limits/index.js'
import { openTestBox } from '../../../../src/testing/index.js'
import { pass, settled } from '../../../support/passing.js'

const servers: Server[] = []

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close()
    server.closeAllConnections()
  }
})

/** Starts a server on a free port. Returns its address. */
function listening(handler: RequestListener): Promise<string> {
  return addressOf(createServer(handler))
}

async function addressOf(server: Server): Promise<string> {
  servers.push(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const quick = { limit: 100, per: 1000 }

describe('limitFetch', () => {
  test('each call waits for a permit', async () => {
    const clock = new VirtualClock()
    const sent: number[] = []
    const send = (): Promise<Response> => {
      sent.push(clock.now())
      return Promise.resolve(new Response('body'))
    }
    const limited: typeof fetch = limitFetch(send, limiter({ limit: 3, per: 300, clock }))
    const answers = Promise.all(
      Array.from({ length: 8 }, async () => (await limited('http://service/')).text()),
    )
    await pass(clock, 1000)
    expect(await answers).toEqual(Array.from({ length: 8 }, () => 'body'))
    expect(sent).toEqual([0, 0, 0, 300, 300, 300, 600, 600])
  })

  test('a service can ask for an hour at most, or for what the caller allows; a resume ends that', async () => {
    const refusal = { status: 429, headers: { 'Retry-After': '86400' } }
    const send: typeof fetch = () => Promise.resolve(new Response('', refusal))
    const paused = async (options?: LimitFetchOptions): Promise<number> => {
      const partner = limiter(quick)
      await limitFetch(send, partner, options)('http://service/')
      const { waitsFor, readyIn } = partner.explain()
      expect(waitsFor).toBe('pause')
      partner.resume()
      expect(partner.tryAcquire()).toBeDefined()
      return Math.round(readyIn / 60_000)
    }
    expect(await paused()).toBe(60)
    expect(await paused({ maxPause: '5m' })).toBe(5)
    expect(await paused({ maxPause: '7d' })).toBe(24 * 60)
  })

  test('a call that was aborted before it was sent counts for nothing', async () => {
    let arrived = 0
    const url = await listening((_request, response) => {
      arrived++
      response.end()
    })
    const own = limiter({ limit: 1, per: '1h', concurrency: 1 })
    const limited = limitFetch(fetch, own)
    const reason = new Error('changed my mind')
    const early = new AbortController()
    early.abort(reason)
    await expect(limited(url, { signal: early.signal })).rejects.toBe(reason)
    // Aborts after the permit was given, and before the caller could continue.
    const late = new AbortController()
    const call = limited(url, { signal: late.signal })
    queueMicrotask(() => queueMicrotask(() => late.abort(reason)))
    const outcome = await call.then(
      ({ status }) => status,
      (error: unknown) => error,
    )
    expect(outcome).toBe(reason)
    expect(arrived).toBe(0)
    expect(own.explain()).toMatchObject({ waitsFor: 'nothing', running: 0 })
    expect((await limited(new Request(url))).status).toBe(200)
    const waiting = new AbortController()
    const waits = limited(new Request(url, { signal: waiting.signal }))
    waiting.abort(reason)
    await expect(waits).rejects.toBe(reason)
  })

  test('a call reserves its estimate, and what its response says it has used counts', async () => {
    const provider = limiter({
      limits: [
        { limit: 10, per: '1h' },
        { limit: 1000, per: '1h', unit: 'tokens' },
      ],
    })
    const tenants: unknown[] = []
    const send = (_: unknown, init?: RequestInit): Promise<Response> =>
      Promise.resolve(Response.json({ tokens: Number(init?.body) }))
    const limited: typeof fetch = limitFetch(send, provider, {
      cost: (_, init) => ({ tokens: Number(init?.body) + 100 }),
      used: async response => (await response.json()) as { tokens: number },
      tenant: input => {
        tenants.push(input)
        return { tenant: 'acme', group: 'trials' }
      },
    })
    const remaining = (): number => provider.explain({ tokens: 0 }).limits[1]!.remaining
    const answer = await limited('http://service/', { method: 'POST', body: '300' })
    await vi.waitFor(() => expect(remaining()).toBe(700))
    expect(await answer.json()).toEqual({ tokens: 300 })
    expect(tenants).toEqual(['http://service/'])
    await expect(limited('http://service/', { body: '901' })).rejects.toMatchObject({
      taskBegan: false,
      message: 'tokens must be a whole number from 0 to 1000, not 1001',
    })
    // One that can't be read keeps its estimate, and its body is left to the caller.
    for (const used of [() => undefined, () => Promise.reject(new Error('no JSON')), () => ({ coins: 1 })]) {
      const before = remaining()
      const its: typeof fetch = limitFetch(send, provider, { cost: { tokens: 50 }, used: used as never })
      const kept = await its('http://service/', { body: '7' })
      await settled()
      expect(remaining()).toBe(before - 50)
      expect(await kept.json()).toEqual({ tokens: 7 })
    }
  })

  test('a refusal that is retried can be settled', async () => {
    const provider = limiter({ limit: 1000, per: '1h', unit: 'tokens' })
    let calls = 0
    const send = (): Promise<Response> =>
      Promise.resolve(
        ++calls === 1
          ? new Response('later', { status: 429, headers: { 'Retry-After': '0' } })
          : new Response('ok'),
      )
    const limited: typeof fetch = limitFetch(send, provider, {
      retries: 1,
      cost: { tokens: 900 },
      used: ({ ok }) => ({ tokens: ok ? 700 : 0 }),
    })
    expect(await (await limited('http://service/')).text()).toBe('ok')
    await vi.waitFor(() => expect(provider.explain({ tokens: 0 }).limits[0]!.remaining).toBe(300))
  })

  test('a call that fails releases its permit, and counts', async () => {
    const own = limiter({ limit: 5, per: '1h', concurrency: 1 })
    const limited: typeof fetch = limitFetch(() => Promise.reject(new TypeError('fetch failed')), own)
    await expect(limited('http://127.0.0.1/')).rejects.toThrow('fetch failed')
    expect(own.explain()).toMatchObject({ running: 0, limits: [{ remaining: 4 }] })
  })

  test("a pause that can't be shared does not lose the answer", async () => {
    const answer = new Response(null, { status: 429, headers: { 'Retry-After': '5' } })
    const limited: typeof fetch = limitFetch(() => Promise.resolve(answer), {
      acquire: () =>
        Promise.resolve({ release: () => undefined, refund: () => undefined, settle: () => undefined }),
      pauseUntil: () => Promise.reject(new Error('the engine is away')),
    })
    expect(await limited('http://127.0.0.1/')).toBe(answer)
  })

  /**
   * Returns a limited fetch whose service rejects a number of calls first, and the bodies that the service received.
   */
  function refusing(
    refusals: number,
    options: LimitFetchOptions,
    headers: Record<string, string> = { 'Retry-After': '0' },
  ) {
    const sent: string[] = []
    const send = async (...call: Parameters<typeof fetch>): Promise<Response> => {
      sent.push(await new Request(...call).text())
      return sent.length > refusals
        ? new Response('served')
        : new Response('refused', { status: 429, headers })
    }
    const limited: typeof fetch = limitFetch(send, limiter(quick), options)
    return { sent, limited }
  }

  const url = 'http://service/'

  test('a call that was refused is sent again, as often as it may be', async () => {
    const enough = refusing(2, { retries: 2 })
    const request = new Request(url, { method: 'PUT', body: 'order' })
    expect(await (await enough.limited(request)).text()).toBe('served')
    expect(enough.sent).toEqual(['order', 'order', 'order'])
    const tooFew = refusing(2, { retries: 1 })
    expect(await (await tooFew.limited(url)).text()).toBe('refused')
    expect(tooFew.sent).toHaveLength(2)
  })

  const once = new ReadableStream({ start: controller => controller.close() })

  test.each<[string, RequestInit, LimitFetchOptions, Record<string, string>?]>([
    ['by default', {}, {}],
    ['by a method that may do twice what comes twice', { method: 'POST', body: 'order' }, { retries: 1 }],
    ['with a body that is a stream', { method: 'PUT', body: once, duplex: 'half' }, { retries: 1 }],
    ['whose refusal does not say when to come again', {}, { retries: 1 }, {}],
  ])('a call %s is sent once', async (_, init, options, headers) => {
    const { sent, limited } = refusing(1, options, headers)
    expect((await limited(url, init)).status).toBe(429)
    expect(sent).toHaveLength(1)
  })

  test('a call of any method is sent again when the caller says so', async () => {
    const { sent, limited } = refusing(1, { retries: 1, idempotent: true })
    expect((await limited(url, { method: 'POST', body: new URLSearchParams({ a: '1' }) })).status).toBe(200)
    expect(sent).toEqual(['a=1', 'a=1'])
  })

  test('the caller gets the refusal when its wait is over, and its own reason when it gives up', async () => {
    const bounded = refusing(1, { retries: 1, wait: 30 }, { 'Retry-After': '3600' })
    expect(await (await bounded.limited(url)).text()).toBe('refused')
    expect(bounded.sent).toHaveLength(1)
    const { sent, limited } = refusing(1, { retries: 1 }, { 'Retry-After': '3600' })
    const reason = new Error('changed my mind')
    const abort = new AbortController()
    const call = limited(url, { signal: abort.signal })
    await vi.waitFor(() => expect(sent).toHaveLength(1), { timeout: 5000 })
    await settled()
    abort.abort(reason)
    await expect(call).rejects.toBe(reason)
    expect(sent).toHaveLength(1)
  })

  test('a call waits for its first permit no longer than it is to', async () => {
    const limited = limitFetch(fetch, limiter({ limit: 1, per: '1h', concurrency: 1 }), { wait: 0 })
    const url = await listening((_request, response) => response.end())
    expect((await limited(url)).status).toBe(200)
    await expect(limited(url)).rejects.toMatchObject({ taskBegan: false })
  })
})

/** Returns the parts of a response that state a limit. */
function told(answer: Response): unknown {
  const lists = ['ratelimit-policy', 'ratelimit'].map(name =>
    parseList(answer.headers.get(name)!).map(([item, parameters]): unknown[] => [
      item,
      Object.fromEntries<unknown>(parameters),
    ]),
  )
  return [answer.status, ...lists]
}

const policy = ['default', { q: 2, w: 3600 }]

type KeyOf = (request: IncomingMessage) => string | undefined

/** By framework: creates a server that limits the requests of each sender, and counts the served ones. */
const frameworks: Record<
  string,
  (own: LocalLimiter | BoxLimiter, keyOf: KeyOf, served?: () => void) => Server
> = {
  'node:http': (own, keyOf, served) => {
    const limited = limitRequests(own, { key: keyOf })
    return createServer((request, response) =>
      limited(request, response, () => {
        served?.()
        response.end('welcome')
      }),
    )
  },
  express: (own, keyOf, served) => {
    const app = express()
    app.use(limitRequests(own, { key: keyOf }))
    app.get('/', (_request, response) => {
      served?.()
      response.send('welcome')
    })
    return createServer(app)
  },
  fastify: (own, keyOf, served) => {
    let server: Server | undefined
    const serverFactory = (handler: (...pair: never) => void): Server =>
      (server = createServer(handler as never))
    const app = Fastify({ serverFactory })
    app.addHook('onRequest', limitFastify(own, { key: ({ raw }) => keyOf(raw) }))
    app.get('/', async () => {
      served?.()
      return 'welcome'
    })
    void app.ready()
    return server!
  },
  hono: (own, keyOf, served) => {
    const app = new Hono()
    const key = ({ env }: HonoContextLike): string | undefined =>
      keyOf((env as { incoming: IncomingMessage }).incoming)
    app.use(limitHono(own, { key }))
    app.get('/', context => {
      served?.()
      return context.text('welcome')
    })
    return createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false }) as Server
  },
}

/** Returns a limiter of a box, with two requests an hour. */
async function limitOfBox(): Promise<BoxLimiter> {
  const box = await openTestBox()
  onTestFinished(() => box.close())
  return box.limiter('requests', { limit: 2, per: '1h' })
}

describe.each(Object.entries(frameworks))('requests to %s', (_name, start) => {
  test('are limited by key, and answers state the limit', async () => {
    const own = limiter({ limit: 2, per: '1h' })
    const url = await addressOf(start(own, ({ headers }) => headers['user'] as string | undefined))
    const by = (user: string): Promise<Response> => fetch(url, { headers: { user } })
    const first = await by('anna')
    expect(await first.text()).toBe('welcome')
    expect(told(first)).toEqual([200, [policy], [['default', { r: 1, t: 3600 }]]])
    expect(first.headers.get('retry-after')).toBeNull()
    await by('anna')
    const refused = await by('anna')
    expect(told(refused)).toEqual([429, [policy], [['default', { r: 0, t: 3600 }]]])
    expect(refused.headers.get('retry-after')).toBe('3600')
    expect(refused.headers.get('content-type')).toMatch(/^application\/problem\+json/)
    expect(await refused.json()).toMatchObject({ status: 429, 'violated-policies': ['default'] })
    expect((await by('ben')).status).toBe(200)
    const unlimited = await fetch(url)
    expect([unlimited.status, unlimited.headers.get('ratelimit')]).toEqual([200, null])
  })

  test('by address is not passed by clients that reset their connections', async () => {
    let served = 0
    let closed = 0
    const server = start(
      await limitOfBox(),
      ({ socket }) => socket.remoteAddress,
      () => served++,
    )
    server.on('connection', socket => socket.once('close', () => closed++))
    const { port } = new URL(await addressOf(server))
    const clients = 20
    for (let client = 0; client < clients; client++) {
      const socket = connectSocket(Number(port), '127.0.0.1')
      await once(socket, 'connect')
      await new Promise<void>(sent => socket.write('GET / HTTP/1.1\r\nHost: service\r\n\r\n', () => sent()))
      socket.resetAndDestroy()
    }
    await expect.poll(() => closed, { timeout: 5000 }).toBe(clients)
    expect(served).toBeLessThanOrEqual(2)
  })

  test('counts the requests of a sender whatever text names it', async () => {
    const texts = ['', 'a\0', '\ud800', '\udc00', 'x'.repeat(1020), 'x'.repeat(1021)]
    let served = 0
    const url = await addressOf(
      start(
        await limitOfBox(),
        ({ headers }) => texts[Number(headers['x-sender'])],
        () => served++,
      ),
    )
    const statuses = []
    for (let request = 0; request < texts.length * 3; request++) {
      const headers = { 'x-sender': String(request % texts.length) }
      statuses.push((await fetch(url, { headers })).status)
    }
    expect(statuses).toEqual(texts.flatMap(() => [200, 200]).concat(texts.map(() => 429)))
    expect(served).toBe(texts.length * 2)
  })
})

test('the key of limitFastify gets a typed request without an annotation', async () => {
  const limit = limiter({ limit: 5, per: '1h' })
  const server = Fastify()
  const keys: string[] = []
  const byAddress = limitFastify(limit, {
    key: request => {
      expectTypeOf(request).toEqualTypeOf<FastifyRequestLike>()
      keys.push(request.ip)
      return request.ip
    },
  })
  server.addHook('onRequest', byAddress)
  server.addHook(
    'preHandler',
    limitFastify(limit, {
      key: request => {
        expectTypeOf(request).toEqualTypeOf<FastifyRequestLike>()
        return undefined
      },
    }),
  )
  server.get('/', { onRequest: [byAddress, limitFastify(limit, { key: ({ method }) => method })] }, () => 'a')
  server.get('/b', { onRequest: limitFastify(limit, { key: ({ url }) => url }) }, () => 'b')
  type Route = FastifyRequest<{ Params: { id: string } }>
  const byId = limitFastify(limit, {
    key: (request: Route) => void keys.push(request.params.id) as undefined,
  })
  server.get<{ Params: { id: string } }>('/c/:id', { preHandler: byId }, () => 'c')
  for (const path of ['/', '/b', '/c/7']) expect((await server.inject(path)).statusCode).toBe(200)
  expect(keys).toEqual([...Array<string>(4).fill('127.0.0.1'), '7'])
  await server.close()
})

/** By framework: starts a server with limited requests. */
const lateFrameworks: Record<string, (own: RequestLimiter) => Promise<Server | Http2Server>> = {
  'node:http': async own => {
    const limited = limitRequests(own)
    return createServer((request, response) => limited(request, response, () => response.end()))
  },
  fastify: async own => {
    const app = Fastify()
    await app.addHook('onRequest', limitFastify(own)).ready()
    return app.server
  },
  'fastify over HTTP/2': async own => {
    const app = Fastify({ http2: true })
    await app.addHook('onRequest', limitFastify(own)).ready()
    return app.server
  },
  hono: async own => {
    const app = new Hono().use(limitHono(own))
    return createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false }) as Server
  },
  'hono over HTTP/2': async own => {
    const app = new Hono().use(limitHono(own))
    const options = { overrideGlobalObjects: false, createServer: createHttp2Server }
    return createAdaptorServer({ fetch: app.fetch, ...options }) as Http2Server
  },
}

test.each(Object.entries(lateFrameworks))(
  'a decision that comes after the caller has gone does not keep its permit in use (%s)',
  async (name, start) => {
    const own = limiter({ limit: 9, per: '1h', concurrency: 1 })
    const steps = new EventEmitter()
    const [asked, left] = [once(steps, 'asked'), once(steps, 'left')]
    const server = await start({
      async decide() {
        steps.emit('asked')
        await left
        return own.decide()
      },
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    onTestFinished(() => void server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    if (name.endsWith('HTTP/2')) {
      const session = connect(url)
      const request = session.request({ ':path': '/' })
      await asked
      request.close(constants.NGHTTP2_CANCEL)
      session.close()
    } else {
      const request = get(url).on('error', () => undefined)
      await asked
      request.destroy()
    }
    const connections = promisify(server.getConnections.bind(server))
    await vi.waitFor(async () => expect(await connections()).toBe(0), { timeout: 5000 })
    steps.emit('left')
    await vi.waitFor(() => expect(own.explain()).toMatchObject({ running: 0, limits: [{ remaining: 8 }] }))
  },
)

describe('a limiter of a box', () => {
  test('limits calls and requests', async () => {
    await using box = await open('memory:')
    const own = box.limiter('partner', { limit: 2, per: '1h' })
    const limited = limitRequests(own)
    const url = await listening((request, response) => limited(request, response, () => response.end()))
    const statuses = []
    for (let call = 0; call < 3; call++) statuses.push((await fetch(url)).status)
    expect(statuses).toEqual([200, 200, 429])
    const keyed = limitFetch(fetch, own.key('anna'))
    expect((await keyed(url)).status).toBe(429)
    // The response has paused the limiter.
    expect((await own.key('anna').explain()).waitsFor).toBe('pause')
  })
})

describe('limitRequests', () => {
  test('several limits in one answer, and several middlewares', async () => {
    const app = express()
    app.use(
      limitRequests(
        limiter({
          limits: [
            { limit: 5, per: 1000 },
            { limit: 9, per: 60_000 },
            { limit: 9, per: 60_000, window: 'calendar' },
          ],
        }),
      ),
    )
    app.use(limitRequests(limiter({ limit: 1, per: '1h' }), { name: 'global' }))
    app.get('/', (_request, response) => void response.send('welcome'))
    const url = await listening(app)
    const [status, policies] = told(await fetch(url)) as [number, [string, unknown][]]
    expect([status, policies.map(([name]) => name)]).toEqual([
      200,
      ['default-1000ms', 'default-60000ms', 'default-60000ms-2', 'global'],
    ])
    const refused = await fetch(url)
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({ 'violated-policies': ['global'] })
  })

  test('a permit is in use until the answer has been sent or the caller has gone', async () => {
    const own = limiter({ limit: 100, per: 1000, concurrency: 1 })
    const limited = limitRequests(own)
    const url = await listening((request, response) =>
      limited(request, response, () => {
        if (request.url === '/held') return
        response.end()
      }),
    )
    const caller = new AbortController()
    const held = fetch(`${url}/held`, { signal: caller.signal }).catch(() => 'gone')
    while (own.explain().running === 0) await new Promise(resolve => setTimeout(resolve, 1))
    expect((await fetch(url)).status).toBe(429)
    caller.abort()
    expect(await held).toBe('gone')
    while (own.explain().running > 0) await new Promise(resolve => setTimeout(resolve, 1))
    expect((await fetch(url)).status).toBe(200)
  })

  test('an error of the limiter is answered as a problem, and one of the key goes to next', async () => {
    const own = limiter(quick)
    await own.close()
    const app = express()
    app.use('/closed', limitRequests(own))
    const key = (): string => {
      throw new Error('no such user')
    }
    app.use('/key', limitRequests(limiter(quick), { key }))
    app.use(
      ((error, _request, response, _next) => void response.end(error.message)) as express.ErrorRequestHandler,
    )
    const url = await listening(app)
    const closed = await fetch(`${url}/closed`)
    expect([closed.status, closed.headers.get('content-type'), closed.headers.get('retry-after')]).toEqual([
      503,
      'application/problem+json',
      '1',
    ])
    expect(await closed.json()).toMatchObject({ status: 503, code: 'CLOSED' })
    expect(await (await fetch(`${url}/key`)).text()).toBe('no such user')
    const server = Fastify()
    server.addHook('onRequest', limitFastify(own))
    server.get('/', () => 'welcome')
    const answer = await server.inject('/')
    expect([answer.statusCode, answer.headers['content-type']]).toEqual([
      503,
      'application/problem+json; charset=utf-8',
    ])
    expect(answer.json()).toMatchObject({ code: 'CLOSED' })
    await server.close()
  })

  test('bad input is refused', () => {
    expect(() => limitRequests({} as never)).toThrow('limiter must be a limiter')
    expect(() => limitRequests(limiter(quick), { name: 'café' })).toThrow('printable ASCII')
    expect(() => limitRequests(limiter(quick), { key: 5 } as never)).toThrow('key must be a function')
    expect(() => limitRequests(limiter(quick).key('a') as never, { key: () => 'b' })).toThrow('has keys')
    expect(() => limitRequests(limiter(quick), { max: 5 } as never)).toThrow('unknown option "max"')
  })
})
