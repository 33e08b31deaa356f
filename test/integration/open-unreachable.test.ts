import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { freePort } from '../../apps/chaos/servers/free-port.js'
import { open } from '../../src/index.js'
import { RedisPlace } from '../support/redis/place.js'
import { silentPort } from '../support/servers/silent-port.js'

/** Returns a URL for each kind of engine with servers, on three ports. */
function urlsAt(ports: readonly number[]): string[] {
  const [one, two, three] = ports.map(port => `127.0.0.1:${port}`)
  return [
    `redis://${one!}`,
    `redis+sentinel://${one!}/master`,
    `redis+cluster://${one!}`,
    `redis-quorum://${one!},${two!},${three!}`,
    `postgres://${one!}/app`,
    `zookeeper://${one!}`,
    `hazelcast://${one!}`,
  ]
}

test('no engine keeps open longer than its wait at a server that says nothing', async () => {
  const ports = await Promise.all([silentPort(), silentPort(), silentPort()])
  for (const url of urlsAt(ports)) {
    const since = performance.now()
    await expect(open(url, { wait: '700ms' }), url).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    // Without `wait`, each would take five seconds or more.
    expect(performance.now() - since, url).toBeLessThan(4000)
  }
})

test('an open that times out reports why its last attempt failed', async () => {
  const port = await freePort()
  for (const url of [`redis://127.0.0.1:${port}`, `postgres://127.0.0.1:${port}/app`]) {
    // Loads the code of the engine first, because loading may take longer than the wait.
    await expect(open(url)).rejects.toThrow('ECONNREFUSED')
    // The wait may end during an attempt, or right after one.
    const message = new RegExp(
      `^(timed out after 1000 ms opening|could not open) a box on ${url}: .*ECONNREFUSED|^can't reach ${url}: .*ECONNREFUSED`,
    )
    await expect(open(url, { wait: 1000 }), url).rejects.toThrow(message)
  }
})

test('no engine opens at a port where nothing listens, and each reports that nothing was done', async () => {
  const urls = urlsAt(await Promise.all([freePort(), freePort(), freePort()]))
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

test('open waits for a server that starts later, and no longer than it is to', async () => {
  await using here = await RedisPlace.start()
  const { url } = here.server
  await here.server.stop()
  const since = performance.now()
  await expect(open(url, { wait: 600 })).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  expect(performance.now() - since).toBeGreaterThan(590)
  const opening = open(url, { wait: '1m' })
  await sleep(300)
  await here.server.start()
  const box = await opening
  await box.mutex('key').run(() => undefined)
  await box.close()
})
