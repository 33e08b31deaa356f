import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import express from 'express'
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import { Hono } from 'hono'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { open, type Box, type Grant } from 'signalbox'
import type * as consoleLibrary from '../../packages/console/src/index.js'
import type { StateMessage } from '../../packages/console/src/messages.js'
import { quorumUrl } from '../support/servers/quorum.js'
import { startRedisServers } from '../support/servers/redis.js'
import { CommandPlace, PATIENCE } from './command-line.js'
import { ask, startConsole, type Answer, type Question, type RunningConsole } from './console-place.js'

/** The built module, because only this one finds the page. */
const built = new URL('../../packages/console/dist/index.js', import.meta.url).href
const { consoleOf } = (await import(built)) as typeof consoleLibrary

/** Returns a request as the page sends it. */
function fromPage({ port, secret }: RunningConsole, order?: object): Question {
  return {
    method: order === undefined ? 'GET' : 'POST',
    headers: {
      Authorization: `Bearer ${secret}`,
      'Sec-Fetch-Site': 'same-origin',
      Origin: `http://127.0.0.1:${port}`,
      'Content-Type': 'application/json',
    },
    body: order === undefined ? '' : JSON.stringify(order),
  }
}

/** Returns the first state that a console sends. */
async function stateAt(url: string, headers: Readonly<Record<string, string>> = {}): Promise<StateMessage> {
  const stop = new AbortController()
  const response = await fetch(url, { headers, signal: stop.signal })
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  let seen = ''
  for await (const part of response.body!.pipeThrough(new TextDecoderStream())) {
    seen += part
    if (seen.includes('\n\n')) break
  }
  stop.abort()
  return JSON.parse(seen.split('\n\n')[0]!.replace(/^data: /, '')) as StateMessage
}

describe('signalbox console', () => {
  test('gives the page to everybody, and the locks only to those who know the secret', async () => {
    await using place = new CommandPlace()
    const box = await place.box('billing')
    await box.mutex('invoice').acquire()
    const running = await startConsole(place)
    const { port, secret, run } = running
    expect(secret.length).toBeGreaterThanOrEqual(32)
    for (const path of ['/', '/page.js', '/page.css']) {
      const { status, headers, body } = await ask(port, path)
      expect(status).toBe(200)
      expect(body).not.toContain(secret)
      expect(headers['content-security-policy']).toContain("default-src 'none'")
      expect(headers['content-security-policy']).toContain("frame-ancestors 'none'")
      expect(headers['content-security-policy']).not.toContain('unsafe')
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cache-control': 'no-store',
      })
    }
    const wrong = ['', 'Bearer ', `Bearer ${secret}x`, `Bearer ${secret.slice(1)}`, `Basic ${secret}`]
    const paths = 'events value?store=a&key=b values?store=a stores release doctor nothing'.split(' ')
    for (const path of paths.map(path => `/${path}`))
      for (const authorization of wrong)
        expect(await ask(port, path, { headers: { Authorization: authorization } })).toMatchObject({
          status: 401,
        })
    const state = await stateAt(`http://127.0.0.1:${port}/events`, { Authorization: `Bearer ${secret}` })
    expect(state).toMatchObject({
      readOnly: false,
      hasDoctor: true,
      keys: [{ key: 'invoice', holders: [{ session: box.session, label: 'billing' }] }],
    })
    run.kill('SIGINT')
    expect(await run.ended).toMatchObject({ status: 0, stderr: '' })
    expect(run.stdout.split(secret)).toHaveLength(2)
  })

  test('answers only under its own name, and to its own pages', async () => {
    await using place = new CommandPlace()
    await place.box('any')
    const running = await startConsole(place)
    const { port } = running
    const { headers } = fromPage(running)
    expect((await ask(port, '/', { headers: { ...headers, Host: 'evil.example' } })).status).toBe(421)
    expect((await ask(port, '/', { headers: { ...headers, Origin: 'http://evil.example' } })).status).toBe(
      403,
    )
    const crossSite = { ...headers, 'Sec-Fetch-Site': 'cross-site' }
    for (const path of ['/events', '/value?store=a&key=b', '/values?store=a'])
      expect((await ask(port, path, { headers: crossSite })).status).toBe(403)
    const order = fromPage(running, { key: 'a', token: '1' })
    const strange: Record<string, [Question, number]> = {
      'another site': [{ ...order, headers: { ...order.headers, 'Sec-Fetch-Site': 'same-site' } }, 403],
      'no origin': [
        {
          ...order,
          headers: { Authorization: headers!['Authorization']!, 'Content-Type': 'application/json' },
        },
        403,
      ],
      'a form': [
        { ...order, headers: { ...order.headers, 'Content-Type': 'application/x-www-form-urlencoded' } },
        415,
      ],
      text: [{ ...order, headers: { ...order.headers, 'Content-Type': 'text/plain' } }, 415],
      'a link': [{ ...order, method: 'GET', body: '' }, 405],
      'a long body': [{ ...order, body: JSON.stringify({ key: 'x'.repeat(70_000), token: '1' }) }, 413],
      'no JSON': [{ ...order, body: '{' }, 400],
      'a list': [{ ...order, body: '[]' }, 400],
      'no token': [{ ...order, body: '{"key":"a"}' }, 400],
      'a strange token': [{ ...order, body: '{"key":"a","token":"-1"}' }, 400],
      'no such holder': [order, 404],
    }
    for (const [name, [question, status]] of Object.entries(strange))
      expect((await ask(port, '/release', question)).status, name).toBe(status)
  })

  /** Addresses on which a server listens only if it is configured to. */
  const outside = Object.values(networkInterfaces())
    .flat()
    .filter(address => !address!.internal && address!.family === 'IPv4')
    .map(address => address!.address)
  // On Linux, more addresses belong to this machine than the one on which the console listens.
  if (process.platform === 'linux') outside.push('127.0.0.2')

  test('listens on this machine only', async () => {
    await using place = new CommandPlace()
    await place.box('any')
    const { port } = await startConsole(place)
    for (const address of outside) {
      const socket = connect(port, address)
      await expect(once(socket, 'connect')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    }
  })

  test('listens beyond this machine when told, and asks for the secret there', async () => {
    await using place = new CommandPlace()
    const box = await place.box('billing')
    await box.mutex('invoice').acquire()
    const { address, port, secret } = await startConsole(place, '--host', '0.0.0.0')
    expect(address).toBe(`http://127.0.0.1:${port}/#secret=${secret}`)
    for (const host of outside) {
      const url = `http://${host}:${port}/`
      expect((await fetch(url)).status).toBe(200)
      expect((await fetch(`${url}events`)).status).toBe(401)
      const headers = { Authorization: `Bearer ${secret}`, 'Sec-Fetch-Site': 'same-origin' }
      expect(await stateAt(`${url}events`, headers)).toMatchObject({ keys: [{ key: 'invoice' }] })
    }
    for (const host of ['', 'http://0.0.0.0']) {
      const { status, stderr } = await place.signalbox('console', '--host', host)
      expect(status, host).not.toBe(0)
      expect(stderr, host).toContain('must be an IP address or the name')
    }
  })

  test('releases and revokes, with a line in the log, and its timeline says that an operator did', async () => {
    await using place = new CommandPlace()
    const [box, dead] = [await place.box('billing'), await place.box('dead')]
    const grant = await box.mutex('invoice\nsignalbox: forged').acquire()
    const lost = await dead.mutex('other').acquire()
    const running = await startConsole(place)
    const { port, run } = running
    const events = await fetch(`http://127.0.0.1:${port}/events`, { headers: fromPage(running).headers! })
    let seen = ''
    void (async () => {
      for await (const part of events.body!.pipeThrough(new TextDecoderStream())) seen += part
    })().catch(() => undefined)
    await vi.waitFor(() => expect(seen).toContain('"state"'), PATIENCE)
    const key = 'invoice\nsignalbox: forged'
    const order = fromPage(running, { key, token: String((grant.token >> 10n) << 10n) })
    expect(await ask(port, '/release', order)).toMatchObject({ status: 200 })
    expect(await ask(port, '/revoke', fromPage(running, { session: dead.session }))).toMatchObject({
      status: 200,
      body: '{"requests":1}',
    })
    expect((await ask(port, '/revoke', fromPage(running, { session: dead.session }))).status).toBe(404)
    await vi.waitFor(
      () => expect([grant.signal.aborted, lost.signal.aborted]).toEqual([true, true]),
      PATIENCE,
    )
    await vi.waitFor(() => {
      expect(seen).toContain('"released by hand"')
      expect(seen).toContain('"revoked by hand"')
    }, PATIENCE)
    const lines = run.stderr.split('\n')
    expect(lines).toHaveLength(4)
    expect(lines[0]).toMatch(/^signalbox: console: released key "invoice\\nsignalbox: forged", token \d+$/)
    expect(lines[1]).toBe(`signalbox: console: revoked session "${dead.session}": 1 request`)
  })

  test('with --read-only, it refuses what would change something', async () => {
    await using place = new CommandPlace()
    const box = await place.box('billing')
    const grant = await box.mutex('invoice').acquire()
    const running = await startConsole(place, '--read-only')
    const order = { key: 'invoice', token: String((grant.token >> 10n) << 10n) }
    for (const [path, body] of [
      ['/release', order],
      ['/revoke', { session: box.session }],
    ] as const)
      expect(await ask(running.port, path, fromPage(running, body))).toMatchObject({ status: 403 })
    grant.assertHeld()
    expect(await ask(running.port, '/doctor', fromPage(running, {}))).toMatchObject({ status: 200 })
    expect(await box.store('signalbox-doctor').get('trial')).toBeUndefined()
    const state = await stateAt(`http://127.0.0.1:${running.port}/events`, fromPage(running).headers)
    expect(state.readOnly).toBe(true)
  })
})

describe('the handlers of signalbox-console', () => {
  const servers: Server[] = []
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.close()
      server.closeAllConnections()
    }
  })

  async function served(server: Server): Promise<number> {
    servers.push(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  }

  const sameOrigin = { 'Sec-Fetch-Site': 'same-origin', 'Content-Type': 'application/json' }

  /** Uses the console of a box with a grant of `a`, which an application serves to its user amy at `/admin/locks`. */
  async function usable(port: number, box: Box, grant: Grant): Promise<void> {
    const headers = { 'X-User': 'amy', ...sameOrigin }
    const at = (path: string, question: Question = {}): Promise<Answer> =>
      ask(port, `/admin/locks${path}`, { headers, ...question })
    expect((await ask(port, '/admin/locks/')).status).toBe(401)
    expect(await at('')).toMatchObject({ status: 308, headers: { location: './locks/' } })
    const page = await at('/')
    expect(page).toMatchObject({ status: 200, headers: { 'content-type': 'text/html; charset=utf-8' } })
    for (const [, path] of page.body.matchAll(/(?:href|src)="(page[^"]+)"/g))
      expect((await at(`/${path!}`)).status).toBe(200)
    const state = await stateAt(`http://127.0.0.1:${port}/admin/locks/events`, headers)
    expect(state).toMatchObject({ engine: box.engine, hasDoctor: false, keys: [{ key: 'a' }] })
    const post = (path: string, body: string): Promise<Answer> => at(path, { method: 'POST', body })
    expect((await post('/doctor', '{}')).status).toBe(404)
    expect((await post('/release', '{')).status).toBe(400)
    expect((await post('/release', '{"key":"a","token":"1"}')).status).toBe(404)
    expect((await post('/release', JSON.stringify({ key: 'a', token: String(grant.token) }))).status).toBe(
      200,
    )
    await expect.poll(() => grant.signal.aborted).toBe(true)
  }

  test('work in Express under any path, also after a parser of bodies', async () => {
    await using box = await open('memory:')
    const grant = await box.mutex('a').acquire()
    const log: string[] = []
    const locks = consoleOf(box, { log: line => log.push(line) })
    const app = express()
    app.use(express.json())
    app.use('/admin', (request, response, next) => {
      if (request.headers['x-user'] === 'amy') return next()
      response.sendStatus(401)
    })
    app.use('/admin/locks', locks.node)
    await usable(await served(createServer(app)), box, grant)
    expect(log.at(-1)).toBe(`console: released key "a", token ${grant.token}`)
  })

  test('work in Fastify under a prefix, as the page says', async () => {
    await using box = await open('memory:')
    const grant = await box.mutex('a').acquire()
    const locks = consoleOf(box, { log: () => undefined })
    const app = Fastify({ forceCloseConnections: true })
    app.addHook('onRequest', async (request, reply) => {
      if (request.headers['x-user'] !== 'amy') return reply.code(401).send()
      return undefined
    })
    const show = (request: FastifyRequest, reply: FastifyReply): void => {
      reply.hijack()
      locks.node(Object.assign(request.raw, { body: request.body }), reply.raw)
    }
    app.all('/admin/locks', show)
    app.all('/admin/locks/*', show)
    await app.listen({ port: 0, host: '127.0.0.1' })
    servers.push(app.server)
    await usable((app.server.address() as AddressInfo).port, box, grant)
  })

  test('work in Hono, and end with the console', async () => {
    await using box = await open('memory:')
    const grant = await box.mutex('a').acquire()
    const locks = consoleOf(box, { readOnly: true })
    const app = new Hono().all('/ops/locks/*', context => locks.fetch(context.req.raw))
    const base = 'http://ops.example/ops/locks/'
    const page = await app.request(base)
    expect(page.headers.get('content-security-policy')).toContain("script-src 'self'")
    expect(await page.text()).toContain('<div id="page">')
    const order = JSON.stringify({ key: 'a', token: String(grant.token) })
    const post = { method: 'POST', headers: sameOrigin, body: order }
    expect((await app.request(`${base}release`, post)).status).toBe(403)
    expect(
      (await app.request(`${base}release`, { ...post, headers: { ...sameOrigin, 'Sec-Fetch-Site': 'none' } }))
        .status,
    ).toBe(403)
    const events = await app.request(`${base}events`)
    const reader = events.body!.getReader()
    expect(new TextDecoder().decode((await reader.read()).value)).toContain('"key":"a"')
    locks.close()
    for (let part = await reader.read(); !part.done; part = await reader.read()) void part
    expect((await app.request(base)).status).toBe(503)
  })

  test('show locks of an engine that has neither values nor limits, and say that it has none', async () => {
    const redis = await startRedisServers(3)
    onTestFinished(() => Promise.all(redis.map(server => server.stop())).then(() => undefined))
    await using box = await open(quorumUrl(redis))
    await box.mutex('a').acquire()
    const locks = consoleOf(box)
    const port = await served(createServer(locks.node))
    const state = await stateAt(`http://127.0.0.1:${port}/events`, sameOrigin)
    expect(state).toMatchObject({ engine: box.engine, keys: [{ key: 'a' }] })
    for (const path of ['/stores', '/value?store=a&key=b', '/values?store=a'])
      expect((await ask(port, path, { headers: sameOrigin })).status, path).toBe(400)
    locks.close()
  })

  test('reject options that are not valid', async () => {
    await using box = await open('memory:')
    expect(() => consoleOf(box, { readonly: true } as object)).toThrow('unknown option "readonly"')
    expect(() => consoleOf(box, { readOnly: 'yes' } as object)).toThrow('readOnly must be true or false')
  })
})
