import { once } from 'node:events'
import { createServer, request, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { consoleOf } from '../../../src/console/index.js'
import { open } from '../../../src/index.js'

const fromPage = { 'Sec-Fetch-Site': 'same-origin', 'Content-Type': 'application/json' }

async function portOf(listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

test('a request that the application has answered meanwhile is left alone', async () => {
  await using box = await open('memory:')
  const locks = consoleOf(box)
  const port = await portOf((request, response) => {
    locks.node(request, response)
    response.writeHead(503).end('too late')
  })
  const { status } = await fetch(`http://127.0.0.1:${port}/value?store=a&key=b`, { headers: fromPage })
  expect(status).toBe(503)
  // A second error would be an unhandled rejection.
  await new Promise(resolve => setImmediate(resolve))
})

test.each([true, false])(
  'a body that is too long is refused with an answer, with a length: %s',
  async hasLength => {
    await using box = await open('memory:')
    const port = await portOf(consoleOf(box).node)
    const body = Buffer.alloc(2 << 20, ' ')
    const headers = hasLength ? { ...fromPage, 'Content-Length': body.length } : fromPage
    for (let turn = 0; turn < 5; turn++) {
      const asking = request({ port, host: '127.0.0.1', path: '/release', method: 'POST', headers })
      asking.write(body)
      asking.end()
      const [response] = (await once(asking, 'response')) as [{ statusCode: number; resume(): void }]
      response.resume()
      expect(response.statusCode).toBe(413)
    }
  },
)

test('a line of the log has the texts of others escaped', async () => {
  await using box = await open('memory:')
  const key = 'a\u009b2J\u202e\n"'
  const { token } = await box.mutex(key).acquire()
  const log: string[] = []
  const { fetch: answer } = consoleOf(box, { log: line => log.push(line) })
  const body = JSON.stringify({ key, token: String(token) })
  const reply = await answer(new Request('http://x/release', { method: 'POST', headers: fromPage, body }))
  expect(reply.status).toBe(200)
  expect(log).toEqual([`console: released key "a\\u009b2J\\u202e\\n\\"", token ${token}`])
})
