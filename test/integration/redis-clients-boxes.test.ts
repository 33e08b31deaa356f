import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Box } from '../../src/box.js'
import { systemClock } from '../../src/clock.js'
import { queued, timed } from '../../src/conformance/time.js'
import { linkTo } from '../../src/engines/redis/open.js'
import { RedisEngine } from '../../src/engines/redis/redis-engine.js'
import { parseRedisUrl } from '../../src/engines/redis/redis-url.js'
import { open } from '../../src/open.js'
import { clientPackages, type TestedPackage } from '../redis/client-packages.js'
import { startRedis, type RedisServer } from '../servers/redis.js'

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.kill())

/** A box and what ends with it. */
interface OpenBox extends AsyncDisposable {
  readonly box: Box
}

/** Every way for a box to talk to a server by a package. */
function ways({
  connectWith,
  client,
  protocols,
}: TestedPackage): { name: string; open: () => Promise<OpenBox> }[] {
  const own = async (): Promise<OpenBox> => {
    const { options, ...place } = parseRedisUrl(server.url)
    const link = linkTo({ ...place, options }, connectWith)
    const box = await Box.join(new RedisEngine(link, options, systemClock), systemClock)
    return { box, [Symbol.asyncDispose]: () => box.close() }
  }
  const given = async (resp: 2 | 3): Promise<OpenBox> => {
    const user = await client(server.url, resp)
    const box = await open({ redis: user.client })
    const close = async (): Promise<void> => {
      await box.close()
      user.close()
    }
    return { box, [Symbol.asyncDispose]: close }
  }
  return [
    { name: 'connections of its own', open: own },
    ...protocols.map(resp => ({ name: `a given client, RESP${resp}`, open: () => given(resp) })),
  ]
}

describe.each(clientPackages)('with $name', tested => {
  test.each(ways(tested))('a waiter is woken and a change is heard over $name', async ({ open: openOne }) => {
    await using first = await openOne()
    await using second = await openOne()
    const [one, other] = [first.box, second.box]
    const held = await one.mutex('key').acquire({ lease: '1m' })
    const asked = other.mutex('key').acquire({ lease: '1m' })
    await queued(one, 'key', 1)
    // It would look again within forty seconds.
    expect(await timed(async () => held.release().then(() => asked))).toBeLessThan(10_000)
    expect((await asked).token).toBeGreaterThan(held.token)
    await (await asked).release()

    const changes = other.store('s').watch('a')
    await changes.next()
    const change = changes.next()
    await one.store('s').transaction(['a', 'b'], tx => {
      tx.put('a', { text: 'größer', list: [1, 2.5] })
      tx.put('b', 1)
    })
    expect((await change).value).toMatchObject({ value: { text: 'größer', list: [1, 2.5] } })
    await changes.return()
    await other.store('s').transaction(['a', 'b'], tx => tx.put('b', tx.get<number>('b')! + 1))
    expect((await one.store('s').get('b'))!.value).toBe(2)
    for (const key of ['a', 'b']) await one.store('s').delete(key)
  })
})
