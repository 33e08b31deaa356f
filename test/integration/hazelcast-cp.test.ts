import type { Client } from 'hazelcast-client'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startChild } from '../contract/child.js'
import { cpOptions, javaLike } from '../contract/hazelcast-cp-fixture.js'
import { hazelcastGuarantees } from '../../src/engines/hazelcast/guarantees.js'
import { open } from '../../src/open.js'
import { locks, queued, soFar, timed } from '../../src/conformance/time.js'
import { startHazelcast, TEST_CLUSTER, type HazelcastServer } from '../servers/hazelcast.js'

/** What has to be told by then: milliseconds. Far more than it takes, far less than for ever. */
const BOUND = 30_000

function urlOf({ address }: HazelcastServer, query: string): string {
  return `hazelcast://${address}/${TEST_CLUSTER}?${query}`
}

/** A client as another program has it. */
async function foreign(server: HazelcastServer): Promise<Client> {
  const client = await javaLike(server)
  onTestFinished(() => client.shutdown())
  return client
}

test.for(['safe', 'unsafe'])(
  'Community members without a CP subsystem are told, with what is missing: cp=%s',
  { timeout: 2 * BOUND },
  async cp => {
    await using server = await startHazelcast()
    const took = timed(async () => {
      const opening = open(urlOf(server, `cp=${cp}`))
      await expect(opening).rejects.toMatchObject({
        code: 'UNAVAILABLE',
        engine: `hazelcast://${server.address}/${TEST_CLUSTER}`,
        message: expect.stringMatching(/has no CP subsystem.*Enterprise.*cp-member-count of 3/) as string,
      })
    })
    expect(await took).toBeLessThan(BOUND)
    await using box = await open(urlOf(server, 'map=signalbox'))
    await box.mutex('key').run(() => undefined)
  },
)

describe('a CP subsystem in unsafe mode', () => {
  let server: HazelcastServer

  beforeAll(async () => {
    server = await startHazelcast(cpOptions())
  })
  afterAll(() => server.kill())

  test('is refused unless it is allowed by name', async () => {
    await expect(open(urlOf(server, 'cp=safe'))).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringMatching(/unsafe mode.*cp-member-count.*cp=unsafe/) as string,
    })
    const hazelcast = { clusterName: TEST_CLUSTER, network: { clusterMembers: [server.address] } }
    await expect(open({ hazelcast, cp: 'safe' })).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await using box = await open({ hazelcast, cp: 'unsafe' })
    expect(box.guarantees).toEqual(hazelcastGuarantees('unsafe'))
    expect(await box.mutex('key').run(grant => grant.token)).toBeGreaterThan(0n)
  })

  test('boxes with and without it do not share a map', async () => {
    const mixed = /boxes which use the CP subsystem/
    {
      await using box = await open(urlOf(server, 'map=first&cp=unsafe'))
      await box.mutex('key').run(() => undefined)
      await expect(open(urlOf(server, 'map=first'))).rejects.toThrow(mixed)
    }
    await using box = await open(urlOf(server, 'map=second'))
    await box.mutex('key').run(() => undefined)
    await expect(open(urlOf(server, 'map=second&cp=unsafe'))).rejects.toThrow(/without the CP subsystem/)
  })

  test('a FencedLock keeps boxes out, and they keep out who wants it', async () => {
    const client = await foreign(server)
    const lock = await client.getCPSubsystem().getLock('invoice:42@java')
    await using box = await open(urlOf(server, 'map=java&cp=unsafe'))
    const grant = await box.mutex('invoice:42').acquire()
    expect(await lock.tryLock(0)).toBeUndefined()
    await grant.release()
    const fence = await lock.tryLock(BOUND)
    expect(await box.mutex('invoice:42').tryAcquire()).toBeUndefined()
    const waiting = box.mutex('invoice:42').acquire()
    expect(await soFar(waiting)).toBe('pending')
    await lock.unlock(fence!)
    const after = await waiting
    expect(after.token).toBeGreaterThan(grant.token)
    await after.release()
  })

  test('keys with an @, or spaces at their ends, are locks of their own', async () => {
    await using box = await open(urlOf(server, 'map=names&cp=unsafe'))
    const keys = ['a', 'a@b', ' a', 'a ', 'a%40b', '@']
    await using grant = await box.mutex(...keys).acquire({ wait: BOUND })
    grant.assertHeld()
    const client = await foreign(server)
    const lock = await client.getCPSubsystem().getLock('a%40b@names')
    expect(await lock.isLocked()).toBe(true)
  })

  test('waiting boxes are woken in their order, with rising tokens', async () => {
    const url = urlOf(server, 'map=woken&cp=unsafe')
    await using one = await open(url)
    await using other = await open(url)
    let held = await one.mutex('key').acquire({ lease: '5m' })
    for (const box of [other, one, other]) {
      const waiting = box.mutex('key').acquire({ lease: '5m' })
      await queued(one, 'key', 1)
      await held.release()
      const next = await waiting
      expect(next.token).toBeGreaterThan(held.token)
      held = next
    }
    await held.release()
  })

  test('transactions, readers and semaphores work as ever', async () => {
    const url = urlOf(server, 'map=state&cp=unsafe')
    await using one = await open(url)
    await using other = await open(url)
    const count = async (box: typeof one): Promise<void> => {
      for (let turn = 0; turn < 10; turn++)
        await box
          .store('s')
          .transaction(['n'], async tx => tx.put('n', (((await tx.get('n')) as number) ?? 0) + 1))
    }
    await Promise.all([count(one), count(other)])
    expect(await one.store('s').get('n')).toMatchObject({ value: 20 })
    await using reading = await one.readWriteLock('rw').read.acquire()
    await using beside = await other.readWriteLock('rw').read.acquire()
    expect(await one.readWriteLock('rw').write.tryAcquire()).toBeUndefined()
    reading.assertHeld()
    beside.assertHeld()
  })

  test(
    'what a dead process held is free when its lease and its CP session are over',
    { timeout: 2 * BOUND },
    async () => {
      const url = urlOf(server, 'map=dead&cp=unsafe')
      await using box = await open(url)
      const child = startChild('dist/src/conformance/holder', 'signalbox', url, '2s')
      await child.printed('holding')
      const [report] = await locks(box, 'held')
      child.kill('SIGKILL')
      await using grant = await box.mutex('held').acquire({ wait: BOUND })
      expect(grant.token).toBeGreaterThan(report!.holders[0]!.token!)
    },
  )
})
