import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { Box } from '../../src/box.js'
import { systemClock } from '../../src/clock.js'
import { open } from '../../src/open.js'
import { LostError } from '../../src/errors.js'
import { redisGuarantees } from '../../src/engines/redis/guarantees.js'
import { openRedis } from '../../src/engines/redis/open.js'
import { FakeClock } from '../servers/fake-clock.js'
import { startRedis, type RedisServer } from '../servers/redis.js'
import type { EngineFixture } from '../../src/conformance/fixture.js'
import { MeddledEngine } from '../../src/conformance/meddled-engine.js'
import { pause, queued } from '../../src/conformance/time.js'

let shared: Promise<RedisServer> | undefined

/** The server of this test file; each test has a key prefix of its own on it. It ends with the test process. */
function server(): Promise<RedisServer> {
  return (shared ??= startRedis())
}

/** The Redis engine on one server. */
export const redis: EngineFixture = {
  name: 'redis',
  guarantees: redisGuarantees(false),
  weaknesses: {
    async P1() {
      await using server = await startRedis()
      await using one = await open(server.url)
      const held = await one.mutex('key').acquire()
      await server.restart()
      await using other = await open(server.url)
      const second = await other.mutex('key').acquire({ wait: '5s' })
      held.assertHeld()
      expect(second.token).toBeGreaterThan(held.token)
      await expect
        .poll(() =>
          one
            .store('s')
            .get('key')
            .then(() => 'connected', String),
        )
        .toBe('connected')
      await expect(held.release()).rejects.toThrow(LostError)
      second.assertHeld()
    },
    async P2() {
      const clock = new FakeClock()
      await using server = await startRedis({ clock })
      const tokens: bigint[] = []
      for (const ahead of [0, -3_600_000, 0]) {
        clock.set(ahead)
        await server.restart()
        await using box = await open(server.url)
        await using grant = await box.mutex('key').acquire()
        tokens.push(grant.token)
      }
      expect(tokens[1]).toBeLessThan(tokens[0]!)
      // What was lost alone costs nothing.
      expect(tokens[2]).toBeGreaterThan(tokens[0]!)
    },
    async P4() {
      await using server = await startRedis()
      await using one = await open(server.url)
      const engine = new MeddledEngine(await openRedis(server.url))
      await using other = await Box.join(engine, systemClock)
      const held = await one.mutex('key').acquire()
      const asked = other.mutex('key').acquire()
      await queued(one, 'key', 1)
      // Between the release and the claim of the one who is woken, the key is there for whoever takes it.
      engine.hears = () => false
      await held.release()
      expect(await server.command('SET', 'key', 'foreign', 'NX', 'PX', 300)).toBe('OK')
      engine.hears = () => true
      await (await asked).release()
    },
    async P11() {
      const clock = new FakeClock()
      await using server = await startRedis({ clock })
      await using one = await open(server.url)
      await using other = await open(server.url)
      const held = await one.mutex('key').acquire({ lease: '3s' })
      clock.set(3_600_000)
      const second = await other.mutex('key').acquire({ wait: '2s' })
      expect(second.token).toBeGreaterThan(held.token)
      // Its next renewal, at a third of the lease, tells the first.
      await pause(1500)
      expect(() => held.assertHeld()).toThrow(LostError)
      second.assertHeld()
    },
    async P13() {
      await using server = await startRedis()
      await using box = await open(server.url)
      const store = box.store('s')
      await store.put('key', 1)
      await server.restart()
      await expect.poll(() => store.get('key').catch(() => 'not yet'), { timeout: 5000 }).toBeUndefined()
    },
  },
  async start() {
    const url = `${(await server()).url}?prefix=${randomUUID().slice(0, 8)}:`
    return { url, engine: () => openRedis(url), close: () => undefined }
  },
}
