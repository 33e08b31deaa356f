import { Cluster, Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { open } from '../../src/open.js'
import { Names } from '../../src/engines/redis/names.js'
import { IndeterminateError, InvalidArgumentError, TimedOutError } from '../../src/errors.js'
import type { Box } from '../../src/box.js'
import type { Grant } from '../../src/core/grant.js'
import { Random } from '../../packages/conformance/src/random.js'
import { rising, Section } from '../../packages/conformance/src/section.js'
import {
  locks,
  nothingHeld,
  pause,
  queued,
  soFar,
  timed,
  until,
} from '../../packages/conformance/src/time.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { startRedisCluster, type RedisCluster } from '../support/servers/redis-cluster.js'

let cluster: RedisCluster
let prefixes = 0

beforeAll(async () => {
  cluster = await startRedisCluster()
}, 60_000)

afterAll(async () => {
  await cluster.kill()
})

/** Boxes as of several processes, on keys that no other test uses. */
async function boxes(count: number): Promise<Box[] & AsyncDisposable> {
  const prefix = `t${++prefixes}:`
  const all = await Promise.all(Array.from({ length: count }, () => open(`${cluster.url}?prefix=${prefix}`)))
  return Object.assign(all, {
    async [Symbol.asyncDispose]() {
      for (const box of all) await box.close()
    },
  })
}

/** A key for each master, in the order of the masters. */
async function keyOfEachMaster(prefix: string): Promise<[string, string, string]> {
  const found: string[] = []
  for (let number = 0; found.filter(Boolean).length < 3; number++) {
    const key = `key${number}`
    found[cluster.masters.indexOf(await cluster.masterOf(prefix + key))] ??= key
  }
  return found as [string, string, string]
}

/** Some things in all their orders. */
function orders<T>(things: readonly T[]): T[][] {
  if (things.length === 0) return [[]]
  return things.flatMap((first, index) =>
    orders(things.filter((_, other) => other !== index)).map(rest => [first, ...rest]),
  )
}

/** Waits for a turn of the others' tasks. */
const settle = (): Promise<void> => pause(50)

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

describe('locks over several hash slots', () => {
  test('three boxes that ask in a circle all finish, where two of the keys share a slot', async () => {
    await using all = await boxes(4)
    const [one, two, three, holder] = all as unknown as [Box, Box, Box, Box]
    const [a, b, c] = ['{x}a', '{y}b', '{x}c']
    const asking = [
      { box: one, keys: [a, b] },
      { box: two, keys: [b, c] },
      { box: three, keys: [a, c] },
    ] as const
    const waiting = async (): Promise<number> => {
      const sessions = (await locks(holder)).flatMap(({ waiters }) => waiters.map(({ session }) => session))
      return new Set(sessions).size
    }
    const section = new Section()
    // Each of them begins to wait in any order, and what they wait for comes free from either end.
    for (const arrival of orders(asking)) {
      for (const freeing of [
        [a, b, c],
        [c, b, a],
      ]) {
        const held = new Map<string, Grant>()
        for (const key of freeing) held.set(key, await holder.mutex(key).acquire())
        const asked: Promise<void>[] = []
        for (const [index, { box, keys }] of arrival.entries()) {
          asked.push(box.mutex(...keys).run(grant => section.visit(grant), { wait: '20s' }))
          await until('it waits', async () => (await waiting()) === index + 1)
        }
        for (const key of freeing) await held.get(key)!.release()
        await Promise.all(asked)
      }
    }
    expect(section.most).toBe(1)
    expect(section.tokens).toHaveLength(36)
  })

  test('any sets of keys exclude each other, and the tokens of each key rise', async () => {
    await using all = await boxes(4)
    const keys = ['a', 'b', 'c', 'd', 'e', 'f']
    const sections = new Map(keys.map(key => [key, new Section()]))
    await Promise.all(
      all.flatMap((box, index) =>
        [0, 1].map(async task => {
          const random = new Random(10 * index + task)
          for (let round = 0; round < 12; round++) {
            const mine = random.some(keys, 2 + random.below(3))
            await box.mutex(...(mine as [string])).run(async grant => {
              await Promise.all(mine.map(key => sections.get(key)!.visit(grant)))
            })
          }
        }),
      ),
    )
    for (const [key, { most, tokens }] of sections) {
      expect(most, key).toBe(1)
      expect(rising(tokens), key).toBe(true)
    }
    for await (const report of all[0]!.inspect()) expect(report).toBeUndefined()
  })

  test('a set that is free in some slots only is busy, and no part stays held', async () => {
    await using all = await boxes(2)
    const [one, other] = all as unknown as [Box, Box]
    const held = await one.mutex('b').acquire()
    expect(await other.mutex('a', 'b', 'c').tryAcquire()).toBeUndefined()
    for (const key of ['a', 'c']) expect(await one.mutex(key).tryAcquire()).toBeDefined()
    await held.release()
  })

  test('a wait that ends releases the parts that it held', async () => {
    await using all = await boxes(2)
    const [one, other] = all as unknown as [Box, Box]
    const blocked = ['a', 'b', 'c', 'd']
    for (const key of blocked) {
      const held = await one.mutex(key).acquire()
      await expect(other.mutex('a', 'b', 'c', 'd').acquire({ wait: 100 })).rejects.toThrow(TimedOutError)
      await settle()
      expect((await locks(one)).map(report => report.key)).toEqual([key])
      await held.release()
    }
  })

  test('a part that can’t be released while the network is cut is released soon afterwards', async () => {
    await using all = await boxes(1)
    const [box] = all as unknown as [Box]
    const prefix = `t${prefixes}:`
    const networks = await Promise.all(cluster.masters.map(({ port }) => Proxy.start(port)))
    const behind = networks.map(({ host, port }) => ({ host, port }))
    const nodes = cluster.masters.map(({ host, port }) => `${host}:${port}`)
    const redis = new Cluster(behind, {
      natMap: Object.fromEntries(nodes.map((node, index) => [node, behind[index]!])),
    })
    redis.on('error', () => {})
    try {
      await using cut = await open({ redis, prefix })
      const keys = await keyOfEachMaster(prefix)
      await cut.mutex(...keys).run(() => undefined)
      // The slot that is visited last gives its part, and the answer is lost together with all connections.
      const names = new Names(prefix, true, () => [])
      const last = keys.toSorted((one, other) =>
        names.group(one).numbers < names.group(other).numbers ? 1 : -1,
      )[0]!
      networks[keys.indexOf(last)]!.replies = 'hold'
      const asked = cut.mutex(...keys).acquire({ lease: '1m' })
      await until('all parts are held', async () => (await locks(box)).length === keys.length)
      for (const network of networks) {
        network.target = undefined
        network.cut()
      }
      await expect(asked).rejects.toThrow(IndeterminateError)
      expect(await locks(box)).toHaveLength(keys.length)
      for (const [index, network] of networks.entries()) {
        network.replies = 'pass'
        network.target = cluster.masters[index]!.port
      }
      await nothingHeld(box)
    } finally {
      redis.disconnect()
      await Promise.all(networks.map(network => network[Symbol.asyncDispose]()))
    }
  })

  test('a wait longer than the lease keeps the parts that it holds', async () => {
    await using all = await boxes(3)
    const [one, two, three] = all as unknown as [Box, Box, Box]
    const held = await one.mutex('a', 'b').acquire()
    const asked = two.mutex('a', 'b', 'c', 'd').acquire({ lease: 600 })
    await pause(1500)
    expect(await soFar(asked)).toBe('pending')
    // c or d may lie before the slots of a and b: then it is held all the time, else free all the time.
    const first = await Promise.all(
      ['c', 'd'].map(async key => (await three.mutex(key).tryAcquire()) === undefined),
    )
    await pause(1000)
    const later = await Promise.all(
      ['c', 'd'].map(async key => (await three.mutex(key).tryAcquire()) === undefined),
    )
    expect(later.map((busy, index) => busy || !first[index])).toEqual([true, true])
    for await (const { key, holders } of three.inspect()) {
      for (const { token, session } of holders)
        if (session === three.session) await three.forceRelease(key, token!)
    }
    await held.release()
    await (await asked).release()
  })

  test('a release wakes a waiter for the last of several slots', async () => {
    await using all = await boxes(2)
    const [one, other] = all as unknown as [Box, Box]
    for (let round = 0; round < 4; round++) {
      const held = await one.mutex('a', 'b', 'c').acquire()
      const asked = other.mutex('a', 'b', 'c', 'd').acquire()
      await settle()
      expect(await timed(async () => held.release().then(() => asked))).toBeLessThan(2000)
      await (await asked).release()
    }
  })

  test('all parts of a grant are shown with its token, and can be taken away by it', async () => {
    await using all = await boxes(2)
    const [one, other] = all as unknown as [Box, Box]
    const keys = await keyOfEachMaster(`t${prefixes}:`)
    // Each slot counts for itself: the one that was used last has the greatest number.
    for (const last of keys) {
      for (const key of keys) await one.mutex(key).run(() => undefined)
      await one.mutex(last).run(() => undefined)
      const locksOfAll = [
        one.mutex(...keys),
        one.lock(...keys.map(key => ({ key, mode: 'shared' as const }))),
        one.lock(...keys.map(key => ({ key, mode: 'permits' as const, permits: 1, max: 2 }))),
      ]
      for (const lock of locksOfAll) {
        const grant = await lock.acquire({ lease: 900 })
        const shown = await locks(other)
        expect(shown.map(({ holders }) => holders.map(({ token }) => token))).toEqual(
          shown.map(() => [grant.token]),
        )
        await grant.release()
      }
    }
    for (const key of keys) {
      const grant = await one.mutex(...keys).acquire({ lease: 900 })
      expect(await other.forceRelease(key, grant.token - 1024n)).toBe(false)
      expect(await other.forceRelease(key, grant.token)).toBe(true)
      await until('it is told', () => grant.signal.aborted)
      await (await other.mutex(...keys).acquire({ wait: '5s' })).release()
    }
  })

  test('a grant of which a part is taken away is lost as a whole', async () => {
    await using all = await boxes(2)
    const [one, other] = all as unknown as [Box, Box]
    // A holder that does not listen finds out at the next renewal.
    const grant = await one.mutex('a', 'b', 'c').acquire({ lease: 900 })
    const { holders } = (await locks(other, 'b'))[0]!
    expect(await other.forceRelease('b', holders[0]!.token!)).toBe(true)
    await expect.poll(() => grant.signal.aborted).toBe(true)
    await (await other.mutex('a', 'b', 'c').acquire({ wait: '5s' })).release()
    const again = await one.mutex('a', 'b', 'c').acquire({ lease: 900 })
    expect(await other.revoke(one.session)).toBe(3)
    await expect.poll(() => again.signal.aborted).toBe(true)
    await (await other.mutex('a', 'b', 'c').acquire({ wait: '5s' })).release()
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
    // Wake-ups come from the new master now.
    const held = await two.mutex(key).acquire()
    const asked = three.mutex(key).acquire()
    await queued(two, key, 1)
    expect(await timed(async () => held.release().then(() => asked))).toBeLessThan(2000)
  })
})
