import { once } from 'node:events'
import { createServer, request, type RequestListener } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { consoleOf } from '../src/index.js'
import { open, UnavailableError, type Box, type LockReport } from 'signalbox'

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
  // A second error would cause an unhandled rejection.
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

test('a line of the log and an error have the texts of others escaped', async () => {
  await using box = await open('memory:')
  const key = 'a\u009b2J\u202e\n"'
  const { token } = await box.mutex(key).acquire()
  const log: string[] = []
  const { fetch: answer } = consoleOf(box, { log: line => log.push(line) })
  const body = JSON.stringify({ key, token: String(token) })
  const reply = await answer(new Request('http://x/release', { method: 'POST', headers: fromPage, body }))
  expect(reply.status).toBe(200)
  expect(log).toEqual([`console: released key "a\\u009b2J\\u202e\\n\\"", token ${token}`])
  const again = await answer(new Request('http://x/release', { method: 'POST', headers: fromPage, body }))
  expect(await again.json()).toEqual({
    error: `a\\u009b2J\\u202e\\n" has no holder with token ${token} any more`,
  })
})

test('a viewer that receives more at once than it reads is disconnected, and the engine is asked no more', async () => {
  let goDown = (): void => undefined
  const down = new Promise<void>(resolve => (goDown = resolve))
  const label = 'x'.repeat(12 << 20)
  const claim = { key: 'k', mode: 'exclusive' } as const
  const holder = { session: 's', host: 'vm', pid: 1, label, claim, token: 1024n, age: 0, expiresIn: 1000 }
  let looks = 0
  const box = {
    engine: 'test:',
    async *inspect(): AsyncGenerator<LockReport> {
      if (looks++ > 0) {
        await down
        throw new UnavailableError('down')
      }
      yield { key: 'k', holders: [holder], waiters: [] }
    },
    async *limiters() {
      // There are no limiters.
    },
  } as unknown as Box
  const locks = consoleOf(box)
  const port = await portOf(locks.node)
  const stop = new AbortController()
  const first = await fetch(`http://127.0.0.1:${port}/events`, { signal: stop.signal })
  const reader = first.body!.pipeThrough(new TextDecoderStream()).getReader()
  const until = async (text: string): Promise<void> => {
    for (let part = await reader.read(); !part.value!.includes(text); part = await reader.read()) void part
  }
  await until('"events"')
  goDown()
  await until('"fault"')
  // A late viewer receives the known state, and the report that the engine is down.
  const late = request({ port, host: '127.0.0.1', path: '/events' })
  late.end()
  const [response] = (await once(late, 'response')) as [NodeJS.ReadableStream]
  const through = await locks.fetch(new Request('http://x/events'))
  for (const body of [response, through.body!]) {
    let length = 0
    for await (const part of body) length += part.length
    expect(length).toBeGreaterThan(label.length)
  }
  stop.abort()
  // Reads the events that have already arrived.
  const rest = async (): Promise<void> => {
    while (!(await reader.read()).done) continue
  }
  await expect(rest()).rejects.toThrow()
  await vi.waitFor(async () => {
    const before = looks
    await new Promise(resolve => setTimeout(resolve, 1500))
    expect(looks).toBe(before)
  }, 20_000)
})

test('a viewer that asks before the reply to another request has ended is not kept', async () => {
  await using box = await open('memory:')
  const looks = vi.spyOn(box, 'inspect')
  const port = await portOf(consoleOf(box).node)
  const viewer = connect(port, '127.0.0.1')
  viewer.write('GET /events HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(2))
  await vi.waitFor(() => expect(looks.mock.calls.length).toBeGreaterThan(1), 10_000)
  viewer.destroy()
  await vi.waitFor(async () => {
    const before = looks.mock.calls.length
    await new Promise(resolve => setTimeout(resolve, 1500))
    expect(looks).toHaveBeenCalledTimes(before)
  }, 10_000)
})
