import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { Ways } from '../../../apps/chaos/ways.js'

/** Starts a server that sends its name to each client. @returns its port */
async function saying(name: string): Promise<number> {
  const server = createServer(socket => socket.end(name))
  onTestFinished(() => void server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

async function ways(url: string, clients: number, proxyPort?: number): Promise<Ways> {
  const made = await Ways.start(url, clients, proxyPort)
  onTestFinished(() => made[Symbol.asyncDispose]())
  return made
}

/** Returns the text that a server on this port sends. */
async function saidAt(port: string): Promise<string> {
  const socket = connect(Number(port), '127.0.0.1')
  const parts: Buffer[] = []
  for await (const part of socket) parts.push(part as Buffer)
  return Buffer.concat(parts).toString()
}

test('each client is led to all servers that the URL names, through proxies of its own', async () => {
  const ports = await Promise.all(['one', 'two', 'three'].map(saying))
  const hosts = ports.map(port => `localhost:${port}`).join(',')
  const led = await ways(`zookeeper://user:pw@${hosts}/app?sessionTimeout=2s`, 2)
  expect([led.exist, led.areOne]).toEqual([true, false])
  const seen = new Set<string>()
  for (const url of [led.url(0), led.url(1)]) {
    const [, ...its] =
      /^zookeeper:\/\/user:pw@127\.0\.0\.1:(\d+),127\.0\.0\.1:(\d+),127\.0\.0\.1:(\d+)\/app\?sessionTimeout=2s$/.exec(
        url,
      ) ?? []
    expect(await Promise.all(its.map(saidAt))).toEqual(['one', 'two', 'three'])
    for (const port of its) seen.add(port)
  }
  expect(seen.size).toBe(6)
})

test.each([
  'memory:',
  'file:./locks',
  'redis+cluster://a:1,b:2',
  'redis+sentinel://a:1/main',
  'hazelcast://a:1,b:2/dev',
  'hazelcast://a:1/dev',
])('there is no proxy where the engine names further servers to its clients: %s', async url => {
  const led = await ways(url, 2)
  expect(led.exist).toBe(false)
  expect(led.url(1)).toBe(url)
})

test('one port for all takes one server', async () => {
  await expect(ways('redis-quorum://a:1,b:2,c:3', 2, 5700)).rejects.toThrow(/names no single server/)
})
