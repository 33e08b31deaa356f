import * as hazelcast from 'hazelcast-client'
import { afterAll, describe, expect, test } from 'vitest'
import { Box } from '../../src/box.js'
import { systemClock } from '../../src/base/clock.js'
import { HazelcastEngine } from '../../packages/hazelcast/src/hazelcast-engine.js'
import { parseHazelcastUrl } from '../../packages/hazelcast/src/hazelcast-url.js'
import { open } from '../../src/open.js'
import { pause, timed, until } from '../../packages/conformance/src/time.js'
import { failure } from '../support/failure.js'
import { eventually } from '../support/hazelcast/eventually.js'
import { foreignClient } from '../support/hazelcast/foreign-map.js'
import { startHazelcast, TEST_CLUSTER } from '../support/servers/hazelcast.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'

/** Maximum time until a fault is reported or over, in milliseconds. Far more than needed. */
const BOUND = 20_000

const proxy = await Proxy.start(0)
const server = await startHazelcast({ publicPort: proxy.port })
proxy.target = server.port
const url = `hazelcast://127.0.0.1:${proxy.port}/${TEST_CLUSTER}`
afterAll(() => server.kill().then(() => proxy[Symbol.asyncDispose]()))

describe.concurrent('an unreachable cluster', () => {
  test('a wrong name of the cluster is reported', { timeout: 2 * BOUND }, async ({ expect }) => {
    const took = timed(async () => {
      const opening = open(`hazelcast://127.0.0.1:${proxy.port}/another`)
      await expect(opening).rejects.toThrow(/address or the name of the cluster/)
    })
    expect(await took).toBeLessThan(BOUND)
  })

  test.for([
    ['is never over', () => new Promise<never>(() => undefined)],
    ['breaks off', () => Promise.reject(new hazelcast.TargetDisconnectedError('it has ended'))],
  ] as const)(
    'a start that %s, because its member ends, is repeated',
    { timeout: 2 * BOUND },
    async ([, end], { expect }) => {
      let starts = 0
      const Client = {
        newHazelcastClient: (config: hazelcast.ClientConfig) =>
          ++starts === 1 ? end() : hazelcast.Client.newHazelcastClient(config),
      }
      const place = parseHazelcastUrl(url)
      const clientPackage = { ...hazelcast, Client: Client as unknown as typeof hazelcast.Client }
      await using box = await Box.join(new HazelcastEngine(place, clientPackage, systemClock), systemClock)
      expect(await box.mutex('key').run(() => starts)).toBe(2)
    },
  )
})

test(
  'all members restarted: an earlier grant is reported lost, and tokens rise',
  { timeout: 120_000 },
  async () => {
    await using server = await startHazelcast()
    await using box = await open(`hazelcast://${server.address}/${TEST_CLUSTER}`)
    const before = await box.mutex('key').acquire({ lease: '10m' })
    await server.restart()
    // Expects the loss long before the lease ends, and while no other box wants the lock.
    const end = performance.now() + 2 * BOUND
    while (!before.signal.aborted && performance.now() < end) await pause(20)
    expect(() => before.assertHeld()).toThrow()
    const after = await eventually(() => box.mutex('key').acquire(), 2 * BOUND)
    expect(after.token).toBeGreaterThan(before.token)
  },
)

describe('one member', () => {
  test('a caller that stops waiting for another program leaves nothing on the member', async () => {
    const map = await (await foreignClient(server)).getMap('signalbox')
    const box = await open(url)
    expect(await map.tryLock('left', 0)).toBe(true)
    await expect(box.mutex('left').acquire({ wait: 200 })).rejects.toMatchObject({ code: 'TIMED_OUT' })
    const waiting = box.mutex('left').acquire()
    waiting.catch(() => undefined)
    await pause(200)
    await box.close()
    await map.unlock('left')
    expect(await map.tryLock('left', 0)).toBe(true)
    await map.unlock('left')
  })

  test('a key whose lock was requested again, because the reply was lost, is free after its release', async () => {
    const map = await (await foreignClient(server)).getMap('signalbox')
    await using box = await open(url)
    const lease = '5m'
    // Writes the entry of the session, which is written with the first grant.
    await box.mutex('first').run(() => undefined, { lease })
    proxy.replies = 'hold'
    const asked = box.mutex('repeated').acquire({ lease, wait: BOUND })
    await until('it is locked', () => map.isLocked('repeated'))
    proxy.cut()
    proxy.replies = 'pass'
    await (await asked).release()
    expect(await map.isLocked('repeated')).toBe(false)
  })

  test('a lock that is renewed, or passed on in a process, excludes other programs all the time', async () => {
    const map = await (await foreignClient(server)).getMap('signalbox')
    await using box = await open(url)
    const renewed = await box.mutex('renewed').acquire({ lease: 900 })
    // Longer than a member keeps a lock without renewal.
    const end = performance.now() + 3500
    const task = async (): Promise<void> => {
      while (performance.now() < end)
        await box.mutex('passed').run(
          async () => {
            for (const key of ['renewed', 'passed']) expect(await map.isLocked(key)).toBe(true)
          },
          { lease: 900 },
        )
    }
    await Promise.all([task(), task(), task(), task()])
    await renewed.release()
    expect(await map.isLocked('renewed')).toBe(false)
    await until('it is released', async () => !(await map.isLocked('passed')))
  })

  test.each(['another program', 'nobody'])(
    'a grant whose lock was lost, and now belongs to %s, is reported lost, and is not acquired again',
    async owner => {
      const map = await (await foreignClient(server)).getMap('signalbox')
      await using box = await open(url)
      const grant = await box.mutex('taken').acquire({ lease: 900 })
      await map.forceUnlock('taken')
      if (owner !== 'nobody') expect(await map.tryLock('taken', 100)).toBe(true)
      await until('the holder is notified', () => grant.signal.aborted)
      if (owner === 'nobody') {
        expect(() => grant.assertHeld()).toThrow(/revoked it|by force/)
        await until('it is free', async () => !(await map.isLocked('taken')))
      } else {
        expect(await map.isLocked('taken')).toBe(true)
        await map.unlock('taken')
      }
      await box.mutex('taken').run(() => undefined)
    },
  )

  test(
    'a client that was disconnected for longer than its timeout is replaced',
    { timeout: 120_000 },
    async () => {
      await using box = await open(url)
      await using other = await open(url)
      const store = box.store('s')
      const before = await box.mutex('cut').acquire()
      proxy.target = undefined
      proxy.cut()
      const failing = timed(() => expect(store.put('k', 1)).rejects.toMatchObject({ engine: url }))
      expect(await failing).toBeLessThan(BOUND)
      await pause(6000)
      proxy.target = server.port
      await eventually(() => store.put('k', 2), 2 * BOUND)
      expect((await eventually(() => other.store('s').get('k'), 2 * BOUND))!.value).toBe(2)
      const after = await eventually(() => other.mutex('cut').acquire({ wait: '40s' }), 2 * BOUND)
      expect(after.token).toBeGreaterThan(before.token)
      await until('the holder is notified', () => before.signal.aborted)
      expect(() => before.assertHeld()).toThrow()
    },
  )

  test(
    'a member that stops answering is reported in bounded time, and used again after it',
    { timeout: 120_000 },
    async () => {
      await using box = await open(url)
      const held = await box.mutex('before').acquire()
      server.pause()
      try {
        const failure = { code: expect.stringMatching(/UNAVAILABLE|INDETERMINATE/) as string }
        const tasks = [
          () => box.mutex('key').acquire(),
          () => box.mutex('another').tryAcquire(),
          () => box.store('s').get('k'),
          () => box.store('s').put('k', 1),
          () => held.release(),
          () => open(url),
        ]
        // An operation times out after ten seconds, and `open` after twelve.
        for (const took of await Promise.all(
          tasks.map(task => timed(() => expect(task()).rejects.toMatchObject(failure))),
        ))
          expect(took).toBeLessThan(BOUND)
      } finally {
        server.resume()
      }
      const grant = await eventually(() => box.mutex('key').acquire({ wait: '40s' }), 2 * BOUND)
      await grant.release()
    },
  )

  test("a place with another layout, or with another program's data, is refused and left unchanged", async () => {
    const place = `${url}?map=foreign`
    const table = await (await foreignClient(server)).getMap<string, string>('foreign.table')
    for (const [text, message] of [
      ['["box",1,1,1,null,[],[],[],[]]\n', /earlier Signalbox.*delete its entry "table"/],
      ['none of ours', /another program, or has an unknown layout/],
      ['[1,2]\n', /another program, or has an unknown layout/],
    ] as const) {
      await table.set('table', text)
      await expect(open(place)).rejects.toMatchObject(failure('UNAVAILABLE', message))
      expect(await table.get('table')).toBe(text)
    }
    await table.delete('table')
    await using box = await open(place)
    await box.mutex('key').run(() => undefined)
  })

  test("another program's data in place of a value is reported, and leaves no key locked", async () => {
    const place = `${url}?map=spoiled`
    const values = await (await foreignClient(server)).getMap<string, unknown>('spoiled.values')
    await using one = await open(place)
    await using other = await open(place)
    await one.store('s').put('good', 1)
    const json = (text: string) => new hazelcast.HazelcastJsonValue(text)
    // An object of a class that only the other program knows.
    const object = { factoryId: 1, classId: 1, readData: () => undefined, writeData: () => undefined }
    const spoiled = {
      text: 'hello',
      number: 7,
      object,
      null: json('null'),
      foreign: json('{"name":"ICE 1","value":1}'),
      odd: json('{"stamp":1,"version":1,"ids":{"some":1},"value":1}'),
      cut: json('{"stamp":1,"version":1,"ids":[],"value":{"a":'),
    }
    for (const [key, value] of Object.entries(spoiled)) await values.set(`s/${key}`, value)
    const table = await (await foreignClient(server)).getMap<string, string>('spoiled.table')
    for (const key of await table.keySet()) if (key.startsWith('session/')) await table.set(key, 'hello')
    await using late = await open(place)
    await using _held = await one.mutex('held').acquire()
    for await (const { key } of late.inspect()) expect(key).toBe('held')
    const store = late.store('s')
    for (const key of Object.keys(spoiled)) {
      const failure = {
        code: 'UNAVAILABLE',
        key: `s/${key}`,
        message: expect.stringContaining(`can't read the value of s/${key}`) as string,
      }
      // Another operation of the same tick succeeds.
      const [bad, good] = await Promise.allSettled([store.get(key), store.get('good')])
      expect(bad).toMatchObject({ status: 'rejected', reason: failure })
      expect(good).toMatchObject({ status: 'fulfilled', value: { value: 1 } })
      const both = store.transaction(['good', key], transaction => transaction.get(key), { lease: '30s' })
      await expect(both).rejects.toMatchObject(failure)
      expect(await other.mutex('s/good').run(() => 'free', { wait: '5s' })).toBe('free')
      // The entry of a key also contains its locks.
      await expect(other.mutex(`s/${key}`).acquire({ wait: '5s' })).rejects.toMatchObject({
        code: 'UNAVAILABLE',
      })
    }
  })

  test('values are JSON that other programs read', async () => {
    const map = await (
      await foreignClient(server)
    ).getMap<string, hazelcast.HazelcastJsonValue>('signalbox.values')
    await using box = await open(url)
    const version = await box.store('trains').put('ICE 1', { at: 'Bern' })
    await until('it is written back', async () => (await map.get('trains/ICE 1')) !== null)
    expect(await map.get('trains/ICE 1')).toMatchObject({ version, value: { at: 'Bern' } })
  })
})
