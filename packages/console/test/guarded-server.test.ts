import dns from 'node:dns'
import { request } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test, vi } from 'vitest'
import { GuardedServer, type Answer } from '../src/page-kit/guarded-server.js'

/** Returns the reply of a server to a request for this host, from a page with this origin. */
function ask(port: number, host: string, origin?: string): Promise<readonly [number, string]> {
  return new Promise((resolve, reject) => {
    request(
      { host: '127.0.0.1', port, headers: { Host: host, ...(origin && { Origin: origin }) }, agent: false },
      response => {
        text(response).then(body => resolve([response.statusCode!, body]), reject)
      },
    )
      .on('error', reject)
      .end()
  })
}

async function served(
  port: number,
  host?: string,
  answer: Answer = (_, response) => void response.end('page'),
): Promise<URL> {
  const server = await GuardedServer.open(port, answer, host)
  onTestFinished(() => server.close())
  return new URL(server.url)
}

test('the name of another site is refused; addresses and the own name are not, with the port of a tunnel too', async () => {
  const { lookup } = dns
  vi.spyOn(dns, 'lookup').mockImplementation(((_: string, ...rest: [never]) =>
    lookup('127.0.0.1', ...rest)) as typeof lookup)
  onTestFinished(() => void vi.restoreAllMocks())
  const url = await served(0, 'Locks.example')
  const port = Number(url.port)
  for (const host of [
    `LOCALHOST:${port}`,
    `127.0.0.1:${port + 1}`,
    '127.0.0.1',
    `[::1]:${port}`,
    '192.168.1.5',
    `locks.example:${port}`,
  ])
    expect(await ask(port, host), host).toEqual([200, 'page'])
  for (const host of [
    `evil.example:${port}`,
    `localhost.:${port}`,
    `a@localhost:${port}`,
    `127.0.0.1.evil.example`,
    `localhost.evil.example`,
    `locks.example.evil.example`,
    `127.0.0.1:${port}:80`,
  ])
    expect(await ask(port, host), host).toEqual([
      421,
      '{"error":"this server answers only at IP addresses, localhost and the host that it was given"}',
    ])
})

test('a page of another server is refused, on the same address too', async () => {
  const port = Number((await served(0)).port)
  const host = `localhost:${port}`
  expect(await ask(port, host, `http://${host}`)).toEqual([200, 'page'])
  for (const origin of [
    `http://localhost:${port + 1}`,
    `http://127.0.0.1:${port}`,
    `https://${host}`,
    'http://evil.example',
    'null',
  ])
    expect(await ask(port, host, origin), origin).toEqual([
      403,
      '{"error":"the request must come from the page of this server"}',
    ])
})

test('a request that can not be answered does not end the program', async () => {
  const { host, port } = await served(0, undefined, () => {
    throw new Error('too many open files')
  })
  expect(await ask(Number(port), host)).toEqual([500, '{"error":"too many open files"}'])
})

test('others can not use up the files of the program with connections', async () => {
  const url = await served(0)
  const port = Number(url.port)
  const viewers = Array.from({ length: 150 }, () => connect(port, '127.0.0.1').on('error', () => undefined))
  const disconnect = (): void => viewers.forEach(viewer => void viewer.destroy())
  onTestFinished(disconnect)
  await vi.waitFor(() => expect(viewers.filter(({ closed }) => closed)).toHaveLength(50))
  disconnect()
  await vi.waitFor(async () => expect(await ask(port, url.host)).toEqual([200, 'page']))
})

test('the address of a server on all addresses can be opened on this machine', async () => {
  const url = await served(0, '0.0.0.0')
  expect(url.hostname).toBe('127.0.0.1')
  expect(await ask(Number(url.port), url.host)).toEqual([200, 'page'])
})

test('an address of another machine is refused in words', async () => {
  await expect(served(0, '192.0.2.1')).rejects.toThrow(/^can't serve on 192\.0\.2\.1:0: .*EADDRNOTAVAIL/)
  await expect(served(0, '2001:db8::1')).rejects.toThrow(/^can't serve on \[2001:db8::1\]:0: /)
})
