import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import express from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type { Box, BoxLimiter } from '../../../../src/index.js'
import {
  limitFastify,
  limitHono,
  limitRequests,
  type HonoContextLike,
} from '../../../../src/limits/http/index.js'
import { openTestBox } from '../../../../src/testing/index.js'

const LIMIT = 2

let box: Box

beforeEach(async () => {
  box = await openTestBox()
  onTestFinished(() => box.close())
})

function limits(): BoxLimiter {
  return box.limiter('requests', { limit: LIMIT, per: '1h' })
}

type KeyOf = (request: IncomingMessage) => string | undefined

/** By framework: creates a server that limits each sender to two requests an hour, and counts the served ones. */
const frameworks: Record<string, (keyOf: KeyOf, served: () => void) => Server> = {
  'node:http': (keyOf, served) => {
    const limited = limitRequests(limits(), { key: keyOf })
    return createServer((request, response) =>
      limited(request, response, () => {
        served()
        response.end()
      }),
    )
  },
  express: (keyOf, served) => {
    const app = express()
    app.use(limitRequests(limits(), { key: keyOf }))
    app.get('/', (_request, response) => {
      served()
      response.end()
    })
    return createServer(app)
  },
  fastify: (keyOf, served) => {
    let server: Server | undefined
    const serverFactory = (handler: (...pair: never) => void): Server =>
      (server = createServer(handler as never))
    const app = Fastify({ serverFactory })
    app.addHook('onRequest', limitFastify(limits(), { key: ({ raw }) => keyOf(raw) }))
    app.get('/', async () => {
      served()
      return ''
    })
    void app.ready()
    return server!
  },
  hono: (keyOf, served) => {
    const app = new Hono()
    const key = ({ env }: HonoContextLike): string | undefined =>
      keyOf((env as { incoming: IncomingMessage }).incoming)
    app.use(limitHono(limits(), { key }))
    app.get('/', context => {
      served()
      return context.text('')
    })
    return createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false }) as Server
  },
}

async function listening(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

describe.each(Object.entries(frameworks))('a limit of %s', (_name, start) => {
  test('by address is not passed by clients that reset their connections', async () => {
    let served = 0
    let closed = 0
    const server = start(
      ({ socket }) => socket.remoteAddress,
      () => served++,
    )
    server.on('connection', socket => socket.once('close', () => closed++))
    const port = await listening(server)
    const clients = 20
    for (let client = 0; client < clients; client++) {
      const socket = connect(port, '127.0.0.1')
      await once(socket, 'connect')
      await new Promise<void>(sent => socket.write('GET / HTTP/1.1\r\nHost: service\r\n\r\n', () => sent()))
      socket.resetAndDestroy()
    }
    await expect.poll(() => closed, { timeout: 5000 }).toBe(clients)
    expect(served).toBeLessThanOrEqual(LIMIT)
  })

  test('counts the requests of a sender whatever text names it', async () => {
    const texts = ['', 'a\0', '\ud800', '\udc00', 'x'.repeat(1020), 'x'.repeat(1021)]
    let served = 0
    const port = await listening(
      start(
        ({ headers }) => texts[Number(headers['x-sender'])],
        () => served++,
      ),
    )
    const statuses = []
    for (let request = 0; request < texts.length * (LIMIT + 1); request++) {
      const headers = { 'x-sender': String(request % texts.length) }
      statuses.push((await fetch(`http://127.0.0.1:${port}/`, { headers })).status)
    }
    expect(statuses).toEqual(texts.flatMap(() => Array<number>(LIMIT).fill(200)).concat(texts.map(() => 429)))
    expect(served).toBe(texts.length * LIMIT)
  })
})
