import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test, type TestContext } from 'vitest'
import { LocalServer } from '../../../src/page-kit/local-server.js'

/** What a server replies to a request for this host. */
function ask(port: number, host: string): Promise<readonly [number, string]> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, headers: { Host: host }, agent: false }, response => {
      text(response).then(body => resolve([response.statusCode!, body]), reject)
    })
      .on('error', reject)
      .end()
  })
}

async function served(port: number): Promise<number> {
  const server = await LocalServer.open(port, (_, response) => void response.end('page'))
  onTestFinished(() => server.close())
  return Number(new URL(server.url).port || 80)
}

test('another name is refused, and the right ones are named', async () => {
  const port = await served(0)
  expect(await ask(port, `LOCALHOST:${port}`)).toEqual([200, 'page'])
  for (const host of [
    '127.0.0.1',
    `127.0.0.1:${port + 1}`,
    `[::1]:${port}`,
    `localhost.:${port}`,
    `a@localhost:${port}`,
  ])
    expect(await ask(port, host)).toEqual([
      421,
      `{"error":"this server answers only at 127.0.0.1:${port} and localhost:${port}"}`,
    ])
})

test('on port 80, browsers do not name the port', async ({ skip }: TestContext) => {
  const port = await served(80).catch(() => skip('the port is in use, or needs a privilege'))
  for (const host of ['127.0.0.1', 'localhost']) expect(await ask(port, host)).toEqual([200, 'page'])
})
