import { randomUUID } from 'node:crypto'
import { Client, HazelcastJsonValue } from 'hazelcast-client'
import { expect, vi } from 'vitest'
import type { Box } from '../../src/box.js'
import { hazelcastGuarantees } from '../../packages/hazelcast/src/guarantees.js'
import { mapNames } from '../../packages/hazelcast/src/hazelcast-url.js'
import { openHazelcast } from '../../packages/hazelcast/src/open.js'
import { LostError } from '../../src/base/errors.js'
import { open } from '../../src/open.js'
import { FakeClock } from '../support/servers/fake-clock.js'
import { startHazelcast, TEST_CLUSTER, type HazelcastServer } from '../support/servers/hazelcast.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { networkOf } from './behind-proxy.js'
import { startChild } from './child.js'
import type { EngineFixture } from '../../packages/conformance/src/fixture.js'
import { locks, pause, queued, soFar, until } from '../../packages/conformance/src/time.js'

let shared: Promise<HazelcastServer> | undefined

/** The member of this test file; each test has maps of its own on it. It ends with the test process. */
function server(): Promise<HazelcastServer> {
  return (shared ??= startHazelcast())
}

/** Connects a client without Signalbox, like a program in Java. */
function javaLike({ address }: HazelcastServer): Promise<Client> {
  return Client.newHazelcastClient({
    clusterName: TEST_CLUSTER,
    // Disables smart routing, because the client would otherwise switch to the address of a proxy.
    network: { clusterMembers: [address], smartRouting: false },
    properties: { 'hazelcast.logging.level': 'OFF' },
  })
}

let counter: Promise<Client> | undefined

/** Returns the client that counts records for this test file. It ends with the test process. */
function counting(): Promise<Client> {
  return (counter ??= server().then(javaLike))
}

/**
 * Counts the sessions of a place, and the requests and commits in its entries. Ignores the records of ended sessions,
 * which expire after a week, and values, because tombstones of deleted values expire after an hour.
 */
async function recordsOf(client: Client, map: string): Promise<number> {
  const [table, values] = await Promise.all([
    client.getMap<string, string>(`${map}.table`),
    client.getMap<string, { readonly n?: number }>(`${map}.values`),
  ])
  const sessions = [...(await table.keySet())].filter(key => key.startsWith('session/'))
  const room = JSON.parse((await table.get('sets')) ?? '{}') as { readonly n?: number }
  const requests = [...(await values.values())].reduce((sum, { n = 0 }) => sum + n, room.n ?? 0)
  return sessions.length + requests
}

/** Opens a box that connects to the member directly, although the member reports the address of a proxy. */
function openDirectly({ address }: HazelcastServer): Promise<Box> {
  return open({
    hazelcast: {
      clusterName: TEST_CLUSTER,
      network: { clusterMembers: [address], smartRouting: false },
    },
  })
}

/** The Hazelcast engine on one member. */
export const hazelcast: EngineFixture = {
  name: 'hazelcast',
  guarantees: hazelcastGuarantees,
  knowsChanges: true,
  hasClock: false,
  weaknesses: {
    async P1() {
      await using proxy = await Proxy.start(0)
      await using server = await startHazelcast({
        publicPort: proxy.port,
        properties: { 'hazelcast.client.cleanup.period.millis': '500' },
      })
      proxy.target = server.port
      await using box = await open(`hazelcast://127.0.0.1:${proxy.port}/${TEST_CLUSTER}`)
      const foreign = await javaLike(server)
      const map = await foreign.getMap('signalbox')
      const grant = await box.mutex('key').acquire({ lease: '8s' })
      expect(await map.tryLock('key', 100)).toBe(false)
      proxy.target = undefined
      proxy.cut()
      expect(await map.tryLock('key', 10_000)).toBe(true)
      grant.assertHeld()
      proxy.target = server.port
      // The holder learns of its loss once it has reached the member again. Until then, resources reject its writes.
      await until('it is notified', () => grant.signal.aborted)
      expect(() => grant.assertHeld()).toThrow()
      await using direct = await openDirectly(server)
      const reading = await direct.readWriteLock('key').read.tryAcquire()
      // Members do not know readers, so a reader can lock the key while the other program holds it.
      expect(reading).toBeDefined()
      await reading!.release()
      await map.unlock('key')
      const next = await direct.mutex('key').acquire()
      expect(next.token).toBeGreaterThan(grant.token)
      await next.release()
      await foreign.shutdown()
    },
    async P2() {
      await using server = await startHazelcast()
      const url = `hazelcast://${server.address}/${TEST_CLUSTER}`
      const token = async (): Promise<bigint> => {
        await using box = await open(url)
        return await box.mutex('key').run(grant => grant.token)
      }
      const before = await token()
      await server.restart()
      const after = await token()
      expect(after).toBeGreaterThan(before)
      await server.restart()
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 3_600_000 })
      try {
        expect(await token()).toBeLessThan(after)
      } finally {
        vi.useRealTimers()
      }
    },
    async P4() {
      const url = `hazelcast://${(await server()).address}/${TEST_CLUSTER}?map=order`
      const foreign = await javaLike(await server())
      const map = await foreign.getMap('order')
      await using one = await open(url)
      await using other = await open(url)
      const held = await one.mutex('key').acquire()
      const waiting = other.mutex('key').acquire()
      await queued(other, 'key', 1)
      const later = map.tryLock('key', 10_000, 10_000)
      await pause(500)
      await held.release()
      expect(await later).toBe(true)
      expect(await soFar(waiting)).toBe('pending')
      await map.unlock('key')
      await (await waiting).release()
      await foreign.shutdown()
    },
    async P9() {
      const url = `hazelcast://${(await server()).address}/${TEST_CLUSTER}?map=revoked`
      await using box = await open(url)
      using child = startChild('packages/conformance/dist/holder', 'signalbox', url, '20s')
      await child.printed('holding')
      const [report] = await locks(box, 'held')
      child.kill('SIGSTOP')
      expect(await box.revoke(report!.holders[0]!.session)).toBeGreaterThan(0)
      await expect(box.mutex('held').acquire({ wait: 500 })).rejects.toMatchObject({ code: 'TIMED_OUT' })
    },
    async P11() {
      const clock = new FakeClock()
      await using server = await startHazelcast({ clock })
      const url = `hazelcast://${server.address}/${TEST_CLUSTER}`
      await using box = await open(url)
      const lease = 3_000_000
      const grant = await box.mutex('key').acquire({ lease })
      const jump = 3 * lease
      clock.set(jump)
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + jump })
      try {
        await using later = await open(url)
        expect((await later.mutex('key').acquire({ wait: 5000 })).token).toBeGreaterThan(grant.token)
        await until('the holder is notified', () => grant.signal.aborted)
        expect(() => grant.assertHeld()).toThrow(LostError)
      } finally {
        vi.useRealTimers()
      }
    },
    async P13() {
      await using server = await startHazelcast()
      const url = `hazelcast://${server.address}/${TEST_CLUSTER}`
      const box = await open(url)
      await box.store('s').put('key', 'value')
      await box.close()
      await server.restart()
      await using later = await open(url)
      expect(await later.store('s').get('key')).toBeUndefined()
    },
  },
  async start() {
    const { address } = await server()
    const map = randomUUID().slice(0, 8)
    const url = `hazelcast://${address}/${TEST_CLUSTER}?map=${map}`
    return {
      url,
      engine: () => Promise.resolve(openHazelcast(url)),
      size: async () => recordsOf(await counting(), map),
      keeps: 60_000,
      async spoil(store, key) {
        const values = await (await counting()).getMap<string, object>(`${map}.values`)
        const entry = { ...(await values.get(`${store}/${key}`)), value: undefined }
        const spoiled = JSON.stringify(entry).replace(/}$/, ',"value":"cut}')
        await values.set(`${store}/${key}`, new HazelcastJsonValue(spoiled))
      },
      lockOutside: async key => {
        const locks = await (await counting()).getMap(map)
        expect(await locks.tryLock(key, 0, 60_000)).toBe(true)
        return () => locks.unlock(key)
      },
      close: async () => {
        const client = await counting()
        // Destroys the maps, because a searched map keeps a megabyte in the member, and the member would pause longer
        // with each test.
        await Promise.all(mapNames(map).map(async name => (await client.getMap(name)).destroy()))
      },
    }
  },
  async network({ url }) {
    const proxy = await Proxy.start((await server()).port)
    // The member reports its own address. Without smart routing, the client keeps its connection over the proxy.
    const engine = openHazelcast({
      hazelcast: {
        clusterName: TEST_CLUSTER,
        network: { clusterMembers: [`127.0.0.1:${proxy.port}`], smartRouting: false },
      },
      map: new URL(url).searchParams.get('map')!,
    })
    return networkOf([proxy], engine)
  },
}
