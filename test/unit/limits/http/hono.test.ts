import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { serve, type ServerType } from '@hono/node-server'
import { Hono, type Context, type MiddlewareHandler } from 'hono'
import { every } from 'hono/combine'
import { HTTPException } from 'hono/http-exception'
import { stream } from 'hono/streaming'
import { timeout } from 'hono/timeout'
import { afterEach, describe, expect, expectTypeOf, test } from 'vitest'
import { problemOf } from '../../../../src/http/index.js'
import { limitHono, type HonoContextLike } from '../../../../src/limits/http/index.js'
import { limiter } from '../../../../src/limits/index.js'

const servers: ServerType[] = []
const { Request: ownRequest, Response: ownResponse } = globalThis

afterEach(() => {
  // Restores the globals that the server replaces.
  Object.defineProperty(globalThis, 'Request', { value: ownRequest })
  Object.defineProperty(globalThis, 'Response', { value: ownResponse })
  for (const server of servers.splice(0)) {
    server.close()
    if ('closeAllConnections' in server) server.closeAllConnections()
  }
})

/** Starts a server for an app; returns its address. */
async function listening(app: Hono): Promise<string> {
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' })
  servers.push(server)
  if (!server.listening) await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Ways to call an app. Each one returns a function that sends a request. */
const callers: Record<
  string,
  (app: Hono) => Promise<(path: string, init?: RequestInit) => Promise<Response>>
> = {
  '@hono/node-server': async app => {
    const url = await listening(app)
    return (path, init) => fetch(`${url}${path}`, init)
  },
  'app.request': async app => async (path, init) => app.request(path, init),
}

async function eventually(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise(resolve => setTimeout(resolve, 1))
}

describe.each(Object.entries(callers))('a Hono app called by %s', (_name, start) => {
  test('a streamed response uses its permit until it has been read', async () => {
    const own = limiter({ limit: 100, per: '1h', concurrency: 1 })
    const app = new Hono().use(limitHono(own))
    let end = (): void => undefined
    const isRead = new Promise<void>(resolve => (end = resolve))
    app.get('/', context =>
      stream(context, async out => {
        await out.write('first')
        await isRead
        await out.write('last')
      }),
    )
    const call = await start(app)
    const response = await call('/')
    const reader = response.body!.getReader()
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('first')
    expect((await call('/')).status).toBe(429)
    end()
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('last')
    expect((await reader.read()).done).toBe(true)
    await eventually(() => own.explain().running === 0)
    expect(await (await call('/')).text()).toBe('firstlast')
  })

  test('a caller that leaves a streamed response releases the permit', async () => {
    const own = limiter({ limit: 100, per: '1h', concurrency: 1 })
    const app = new Hono().use(limitHono(own))
    let aborted = 0
    app.get('/', context =>
      stream(context, async out => {
        out.onAbort(() => void aborted++)
        while (!out.aborted) {
          await out.write('more')
          await out.sleep(1)
        }
      }),
    )
    const call = await start(app)
    const response = await call('/')
    await response.body!.cancel()
    await eventually(() => own.explain().running === 0 && aborted === 1)
  })

  test('an aborted request releases its permit, and its own waits in the handler end', async () => {
    const own = limiter({ limit: 100, per: '1h', concurrency: 1 })
    const partner = limiter({ limit: 100, per: '1h', concurrency: 1 })
    const app = new Hono().use(limitHono(own))
    const errors: unknown[] = []
    app.onError((error, context) => {
      errors.push(error)
      return context.text('late', 503)
    })
    app.get('/', async context => {
      await partner.run(() => undefined, 1, { signal: context.req.raw.signal })
      return context.text('called')
    })
    const call = await start(app)
    const held = await partner.acquire()
    const aborting = new AbortController()
    const request = call('/', { signal: aborting.signal }).then(
      ({ status }) => status,
      (error: unknown) => error,
    )
    await eventually(() => partner.explain().place === 1)
    expect(own.explain().running).toBe(1)
    aborting.abort()
    await request
    await eventually(() => own.explain().running === 0 && errors.length === 1)
    expect(problemOf(errors[0])?.document).toMatchObject({ code: 'ABORTED', taskBegan: false })
    expect(partner.explain().place).toBe(0)
    held.release()
    expect(partner.explain()).toMatchObject({ running: 0, limits: [{ remaining: 99 }] })
    expect(await (await call('/')).text()).toBe('called')
  })

  test('errors of handlers are answered by the app, show the limit and release their permits', async () => {
    const own = limiter({ limit: 100, per: '1h', concurrency: 1 })
    const app = new Hono().use(limitHono(own))
    app.onError((error, context) =>
      error instanceof HTTPException ? error.getResponse() : context.text(error.message, 500),
    )
    app.get('/error', () => Promise.reject(new Error('of the handler')))
    app.get('/exception', () => {
      throw new HTTPException(418, { message: 'of Hono' })
    })
    const call = await start(app)
    for (const [path, status, text] of [
      ['/error', 500, 'of the handler'],
      ['/exception', 418, 'of Hono'],
      ['/missing', 404, '404 Not Found'],
    ] as const) {
      const response = await call(path)
      expect([response.status, await response.text()]).toEqual([status, text])
      expect(response.headers.get('ratelimit')).toMatch(/^"default";r=\d+;t=3600$/)
      await eventually(() => own.explain().running === 0)
    }
  })

  test('all ways to respond show the limits, and leave the response as it is', async () => {
    const own = limiter({ limit: 100, per: '1h', concurrency: 1 })
    const app = new Hono()
    app.use(async (context, next) => {
      context.header('X-Early', 'kept')
      await next()
    })
    app.use(limitHono(limiter({ limit: 50, per: '1m' }), { name: 'outer' }), limitHono(own))
    const shared = new Response(null, { status: 204 })
    app.get('/shared', () => shared)
    app.get('/own', () => new Response('own', { headers: { RateLimit: '"upstream";r=1;t=1' } }))
    app.get('/immutable', () => Response.redirect('http://127.0.0.1/', 307))
    app.get('/text', context => context.text('text'))
    app.get('/cookies', context => {
      context.header('Set-Cookie', 'a=1', { append: true })
      context.header('Set-Cookie', 'b=2', { append: true })
      return context.json({})
    })
    const call = await start(app)
    const ask = async (path: string, method = 'GET') => {
      const { status, headers, ...response } = await call(path, { method, redirect: 'manual' }).then(
        async one => ({ status: one.status, headers: one.headers, text: await one.text() }),
      )
      await eventually(() => own.explain().running === 0)
      const names = [...(headers.get('ratelimit') ?? '').matchAll(/"(\w+)"/g)].map(([, name]) => name)
      return { status, names, ...response, headers }
    }
    for (let round = 0; round < 2; round++) {
      expect(await ask('/shared')).toMatchObject({ status: 204, names: ['default', 'outer'] })
      expect(await ask('/own')).toMatchObject({ text: 'own', names: ['upstream', 'default', 'outer'] })
      expect(await ask('/immutable')).toMatchObject({ status: 307, names: ['default', 'outer'] })
      const text = await ask('/text')
      expect(text).toMatchObject({ text: 'text', names: ['default', 'outer'] })
      expect(text.headers.get('x-early')).toBe('kept')
      expect((await ask('/cookies')).headers.getSetCookie()).toEqual(['a=1', 'b=2'])
      expect(await ask('/text', 'HEAD')).toMatchObject({ status: 200, text: '', names: ['default', 'outer'] })
    }
  })

  test('a response that came after a timeout releases its permit', async () => {
    const own = limiter({ limit: 100, per: '1h', concurrency: 1 })
    let isLate = false
    const app = new Hono().use(timeout(20))
    app.use(async (_context, next) => {
      await next()
      isLate = true
    })
    app.use(limitHono(own))
    const errors: unknown[] = []
    app.onError((error, context) => {
      errors.push(error)
      if (!(error instanceof HTTPException)) return context.text(error.message, 500)
      // As Hono does by default. The body of this response is a stream.
      const response = error.getResponse()
      return context.newResponse(response.body, response)
    })
    let end = (): void => undefined
    const isOver = new Promise<void>(resolve => (end = resolve))
    app.get('/', async context => {
      await isOver
      return context.text('late')
    })
    const call = await start(app)
    const response = await call('/')
    expect([response.status, await response.text()]).toEqual([504, 'Gateway Timeout'])
    end()
    await eventually(() => own.explain().running === 0 && isLate)
    expect(errors).toEqual([expect.any(HTTPException)])
  })

  test('an error of key goes to the app, and one of the limiter is answered as a problem', async () => {
    const closed = limiter({ limit: 1, per: '1h' })
    await closed.close()
    const app = new Hono()
    app.use('/closed', limitHono(closed))
    const key = (): string => {
      throw new Error('no such user')
    }
    app.use('/key', limitHono(limiter({ limit: 1, per: '1h' }), { key }))
    app.onError((error, context) => context.text(error.message, 500))
    const call = await start(app)
    const problem = await call('/closed')
    expect([problem.status, problem.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await problem.json()).toMatchObject({ code: 'CLOSED' })
    expect(await (await call('/key')).text()).toBe('no such user')
  })
})

test('the key of limitHono gets a typed context without an annotation', async () => {
  interface AppEnv {
    Variables: { user: string }
  }
  const own = limiter({ limit: 1, per: '1h' })
  const app = new Hono<AppEnv>()
  app.use(async (context, next) => {
    context.set('user', context.req.query('user')!)
    await next()
  })
  const byId = limitHono(own, {
    key: context => {
      expectTypeOf(context).toEqualTypeOf<HonoContextLike>()
      return context.req.param('id')
    },
  })
  const byUser: MiddlewareHandler<AppEnv> = limitHono(own, {
    key: context => {
      expectTypeOf(context).toEqualTypeOf<Context<AppEnv>>()
      return context.var.user
    },
  })
  app.use('/user', byUser, limitHono<Context<AppEnv>>(own, { key: context => context.get('user') + '2' }))
  app.get('/user', every(byUser), context => context.text('never'))
  app.get('/id/:id', byId, context => context.text('welcome'))
  expect((await app.request('/id/anna?user=ben')).status).toBe(200)
  expect((await app.request('/id/anna?user=carl')).status).toBe(429)
  expect((await app.request('/user?user=anna')).status).toBe(429)
})
