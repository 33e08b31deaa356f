import { Redis } from 'ioredis'
import { afterAll, describe, expect, test } from 'vitest'
import { open } from '../../src/open.js'
import type { Listener } from '../../src/engine/contract.js'
import { Names } from '../../src/engines/redis/names.js'
import { openRedis } from '../../src/engines/redis/open.js'
import { InvalidArgumentError, UnavailableError } from '../../src/base/errors.js'
import type { Box } from '../../src/box.js'
import { keysOf, listed } from '../../packages/conformance/src/listing.js'
import { rising, Section } from '../../packages/conformance/src/section.js'
import { locks, pause, queued, timed } from '../../packages/conformance/src/time.js'
import { lockRequest } from '../support/lock-request.js'
import { startRedisCluster } from '../support/servers/redis-cluster.js'

let prefixes = 0

const cluster = await startRedisCluster()

afterAll(() => cluster.kill())

/** Opens boxes that behave as in several processes, on keys that no other test uses. */
async function boxes(count: number): Promise<Box[] & AsyncDisposable> {
  const prefix = `t${++prefixes}:`
  const all = await Promise.all(Array.from({ length: count }, () => open(`${cluster.url}?prefix=${prefix}`)))
  return Object.assign(all, {
    async [Symbol.asyncDispose]() {
      for (const box of all) await box.close()
    },
  })
}

test('a node opened as a single server is refused, and the error names the URL of the cluster', async () => {
  for (const { host, port } of cluster.nodes) {
    const node = `${host}:${port}`
    const refusal = {
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(`open redis+cluster://${node},`),
    }
    await expect(open(`redis://${node}`), node).rejects.toMatchObject(refusal)
    await expect(open(`redis://${node}/0?prefix=app:`, { wait: '20s' }), node).rejects.toMatchObject(refusal)
    const client = new Redis({ host, port })
    await expect(open({ redis: client }), node).rejects.toMatchObject(refusal)
    client.disconnect()
  }
})

describe('keys in several hash slots', () => {
  test('a sign of life covers the requests of some slots although it fails for others', async () => {
    const prefix = `t${++prefixes}:`
    const engine = await openRedis(`${cluster.url}?prefix=${prefix}`)
    const listener = { wake: () => undefined, reserved: () => undefined } as unknown as Listener
    await engine.join({ session: 'amy', host: 'host', pid: 1, label: undefined }, listener)
    const request = (id: string, key: string) => lockRequest(id, [{ key, mode: 'exclusive' }])
    const requests = [request('amy.1', '{spoilt}key'), request('amy.2', '{sound}key')]
    for (const { claims } of requests)
      await engine.submit({ type: 'enqueue', request: lockRequest('amy.0', claims), lease: 60_000, wait: 0 })
    for (const waiting of requests)
      await engine.submit({ type: 'enqueue', request: waiting, lease: 60_000, wait: Infinity })
    const { queues } = new Names(prefix, true).group('{spoilt}key')
    const master = await cluster.masterOf('{spoilt}key')
    await master.command('SET', queues, 'spoilt')
    const sign = await engine.submit({ type: 'alive', session: 'amy', requests })
    expect(sign).toMatchObject({ due: ['amy.1'] })
    expect(sign.next).toBeLessThanOrEqual(60_000)
    await expect(
      engine.submit({ type: 'alive', session: 'amy', requests: requests.slice(0, 1) }),
    ).rejects.toThrow(UnavailableError)
    await master.command('DEL', queues)
    await engine.leave()
  })

  test('a lock takes keys of one slot, and refuses others with a reason before anything is held', async () => {
    await using all = await boxes(2)
    const [one, other] = all as unknown as [Box, Box]
    const held = await one.mutex('{t}a', '{t}b').acquire()
    expect(await other.mutex('{t}b', '{t}c').tryAcquire()).toBeUndefined()
    await held.release()
    const lock = other.mutex('a', 'b')
    for (const ask of [() => lock.acquire(), () => lock.tryAcquire(), () => lock.run(() => undefined)]) {
      const refused = ask()
      await expect(refused).rejects.toThrow(InvalidArgumentError)
      await expect(refused).rejects.toThrow(/keys of a lock on Redis Cluster .* not a and b; .*\{orders\}:1/)
    }
    expect(await locks(one)).toEqual([])
  })

  test('a transaction takes keys of one slot, and refuses others with a reason', async () => {
    await using all = await boxes(1)
    const [box] = all as unknown as [Box]
    const store = box.store('s')
    await store.transaction(['{t}a', '{t}b'], tx => {
      tx.put('{t}a', 1)
      tx.put('{t}b', 2)
    })
    expect((await store.get('{t}b'))!.value).toBe(2)
    const refused = store.transaction(['a', 'b', 'c'], tx => tx.put('a', 1))
    await expect(refused).rejects.toThrow(InvalidArgumentError)
    await expect(refused).rejects.toThrow('{orders}:1')
    let runs = 0
    const pointing = store.transaction(
      async read => [`{t}${(await read<string>('pointer')) ?? 'a'}`],
      () => runs++,
    )
    await expect(pointing).rejects.toThrow('{orders}:1')
    expect(runs).toBe(0)
  })
})

describe('a slot that moves to another master', () => {
  test('locks and values in it work while it moves, and nothing is lost or held twice', async () => {
    await using all = await boxes(3)
    const [one, two, three] = all as unknown as [Box, Box, Box]
    const key = `{moving}key`
    const slot = await cluster.slotOf(key)
    const from = await cluster.masterOf(key)
    const to = cluster.masters.find(master => master !== from)!
    const section = new Section()
    const store = one.store('{moving}')
    const stop = new AbortController()
    let counted = 0
    const work = all.map(async box => {
      while (!stop.signal.aborted) {
        await box.mutex(key).run(grant => section.visit(grant))
        await box.store('{moving}').transaction(['count'], tx => {
          tx.put('count', (tx.get<number>('count') ?? 0) + 1)
        })
        counted++
      }
    })
    await pause(200)
    await cluster.beginMoving(slot, from, to)
    await pause(100)
    await cluster.finishMoving(slot, from, to)
    await pause(500)
    stop.abort()
    await Promise.all(work)
    expect(section.most).toBe(1)
    expect(rising(section.tokens)).toBe(true)
    expect((await store.get('count'))!.value).toBe(counted)
    // Wake-ups now come from the new master.
    const held = await two.mutex(key).acquire()
    const asked = three.mutex(key).acquire()
    await queued(two, key, 1)
    expect(await timed(async () => held.release().then(() => asked))).toBeLessThan(2000)
  })

  test('a box lists what is in it before it has learned of a new master', async () => {
    await using own = await startRedisCluster()
    await using one = await open(own.url)
    await using other = await open(own.url)
    await one.store('{moved}').put('a', 1)
    const slot = await own.slotOf('{moved}')
    const [from, to] = [await own.masterOf('{moved}'), await own.join()]
    await own.beginMoving(slot, from, to)
    await own.finishMoving(slot, from, to)
    await one.mutex('{moved}lock').acquire()
    expect(keysOf(await listed(other.store('{moved}')))).toEqual(['a'])
    expect(await locks(other, '{moved}lock')).toHaveLength(1)
  })
})
