import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '../../apps/chaos/servers/free-port.js'
import { open } from '../../src/index.js'

/** A server that takes connections and says nothing. */
async function silentPort(): Promise<number> {
  const port = await freePort()
  const server = createServer(socket => onTestFinished(() => void socket.destroy()))
  onTestFinished(() => void server.close())
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  return port
}

test('no engine keeps open longer than its wait at a server that says nothing', async () => {
  const ports = await Promise.all([silentPort(), silentPort(), silentPort()])
  const [one, two, three] = ports.map(port => `127.0.0.1:${port}`)
  const urls = [
    `redis://${one!}`,
    `redis+sentinel://${one!}/master`,
    `redis+cluster://${one!}`,
    `redis-quorum://${one!},${two!},${three!}`,
    `postgres://${one!}/app`,
    `zookeeper://${one!}`,
    `hazelcast://${one!}`,
  ]
  for (const url of urls) {
    const since = performance.now()
    await expect(open(url, { wait: '700ms' }), url).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    // Without the wait each takes five seconds or more.
    expect(performance.now() - since, url).toBeLessThan(4000)
  }
})

for (const [what, port] of [
  ['a server that says nothing', silentPort],
  ['a port where nothing listens', freePort],
] as const) {
  test(`no engine opens at ${what}, and each reports that nothing was done`, async () => {
    const [one, two, three] = await Promise.all(
      [port(), port(), port()].map(async at => `127.0.0.1:${await at}`),
    )
    const urls = [
      `redis://${one!}`,
      `redis+sentinel://${one!}/master`,
      `redis+cluster://${one!}`,
      `redis-quorum://${one!},${two!},${three!}`,
      `postgres://${one!}/app`,
      `zookeeper://${one!}`,
      `hazelcast://${one!}`,
      `postgres://${one!}/app`,
    ]
    const codes = await Promise.all(
      urls.map(async url =>
        open(url).then(
          () => 'opened',
          (error: unknown) => (error as { code: string }).code,
        ),
      ),
    )
    expect(codes).toEqual(urls.map(() => 'UNAVAILABLE'))
  })
}
