import { randomUUID } from 'node:crypto'
import * as hazelcast from 'hazelcast-client'
import { expect, vi } from 'vitest'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { Box } from '../../src/box.js'
import { systemClock } from '../../src/clock.js'
import type { EngineFixture } from '../../src/conformance/fixture.js'
import { locks, pause, queued, soFar } from '../../src/conformance/time.js'
import { hazelcastGuarantees } from '../../src/engines/hazelcast/guarantees.js'
import { HazelcastEngine } from '../../src/engines/hazelcast/hazelcast-engine.js'
import { parseHazelcastUrl } from '../../src/engines/hazelcast/hazelcast-url.js'
import { openHazelcast } from '../../src/engines/hazelcast/open.js'
import { open } from '../../src/open.js'
import {
  startHazelcast,
  TEST_CLUSTER,
  type HazelcastMemberOptions,
  type HazelcastServer,
} from '../servers/hazelcast.js'
import { startChild } from './child.js'

/** How long a CP session outlives silence here: milliseconds. */
const CP_SESSION = 5000

/** Members of the last version whose Community edition has a CP subsystem, unsafe unless CP members are counted. */
export function cpOptions(cpMembers = 0): HazelcastMemberOptions {
  return {
    version: '5.4',
    more: `<cp-subsystem>
    <cp-member-count>${cpMembers}</cp-member-count>
    <session-time-to-live-seconds>${CP_SESSION / 1000}</session-time-to-live-seconds>
    <session-heartbeat-interval-seconds>1</session-heartbeat-interval-seconds>
  </cp-subsystem>`,
  }
}

let shared: Promise<HazelcastServer> | undefined

/** The member of this test file; each test has a map of its own on it. It ends with the test process. */
function server(): Promise<HazelcastServer> {
  return (shared ??= startHazelcast(cpOptions()))
}

function urlOf({ address }: HazelcastServer, map = 'signalbox'): string {
  return `hazelcast://${address}/${TEST_CLUSTER}?cp=unsafe&map=${map}`
}

/** A client of the member alone, as a program in Java has it. */
export function javaLike({ address }: HazelcastServer): Promise<hazelcast.Client> {
  return hazelcast.Client.newHazelcastClient({
    clusterName: TEST_CLUSTER,
    network: { clusterMembers: [address], smartRouting: false },
    properties: { 'hazelcast.logging.level': 'OFF' },
  })
}

/** The Hazelcast engine over the CP subsystem of one member, which is unsafe. */
export const hazelcastCp: EngineFixture = {
  name: 'hazelcast over the CP subsystem',
  guarantees: hazelcastGuarantees('unsafe'),
  hasClock: false,
  weaknesses: {
    async P1() {
      await using proxy = await Proxy.start(0)
      await using server = await startHazelcast({ ...cpOptions(), publicPort: proxy.port })
      proxy.target = server.port
      await using box = await open(`hazelcast://127.0.0.1:${proxy.port}/${TEST_CLUSTER}?cp=unsafe`)
      const foreign = await javaLike(server)
      const lock = await foreign.getCPSubsystem().getLock('key@signalbox')
      const grant = await box.mutex('key').acquire({ lease: '1m' })
      expect(await lock.tryLock(100)).toBeUndefined()
      proxy.target = undefined
      proxy.cut()
      expect(await lock.tryLock(30_000)).toBeDefined()
      grant.assertHeld()
      proxy.target = server.port
      await foreign.shutdown()
    },
    async P2() {
      await using server = await startHazelcast(cpOptions())
      const token = async (): Promise<bigint> => {
        await using box = await open(urlOf(server))
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
      const url = urlOf(await server(), 'order')
      const foreign = await javaLike(await server())
      const lock = await foreign.getCPSubsystem().getLock('key@order')
      await using one = await open(url)
      await using other = await open(url)
      const held = await one.mutex('key').acquire()
      const waiting = other.mutex('key').acquire()
      await queued(other, 'key', 1)
      const later = lock.tryLock(10_000)
      await pause(100)
      await held.release()
      const fence = await later
      expect(fence).toBeDefined()
      expect(await soFar(waiting)).toBe('pending')
      await lock.unlock(fence!)
      await (await waiting).release()
      await foreign.shutdown()
    },
    async P9() {
      const url = urlOf(await server(), 'revoked')
      await using box = await open(url)
      const child = startChild('dist/src/conformance/holder', 'signalbox', url, '20s')
      await child.printed('holding')
      const [report] = await locks(box, 'held')
      child.kill('SIGKILL')
      expect(await box.revoke(report!.holders[0]!.session)).toBeGreaterThan(0)
      await expect(box.mutex('held').acquire({ wait: 500 })).rejects.toMatchObject({ code: 'TIMED_OUT' })
    },
    async P12() {
      let client: hazelcast.Client | undefined
      const Client = {
        newHazelcastClient: async (config: hazelcast.ClientConfig) =>
          (client = await hazelcast.Client.newHazelcastClient(config)),
      }
      const clientPackage = { ...hazelcast, Client: Client as unknown as typeof hazelcast.Client }
      const place = parseHazelcastUrl(urlOf(await server(), 'many'))
      await using box = await Box.join(new HazelcastEngine(place, clientPackage, systemClock), systemClock)
      for (let index = 0; index < 50; index++) await box.mutex(`key ${index}`).run(() => undefined)
      const { cpProxyManager } = client!.getCPSubsystem() as unknown as {
        cpProxyManager: { lockProxies: ReadonlyMap<string, unknown> }
      }
      expect(cpProxyManager.lockProxies.size).toBeGreaterThanOrEqual(50)
    },
    async P13() {
      await using server = await startHazelcast(cpOptions())
      const box = await open(urlOf(server))
      await box.store('s').put('key', 'value')
      await box.close()
      await server.restart()
      await using later = await open(urlOf(server))
      expect(await later.store('s').get('key')).toBeUndefined()
    },
  },
  async start() {
    const url = urlOf(await server(), randomUUID().slice(0, 8))
    return { url, engine: () => openHazelcast(url), close: () => undefined }
  },
}
