import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Child } from '../../packages/conformance/src/child.js'
import { queued, timed } from '../../packages/conformance/src/time.js'
import { open } from '../../src/open.js'
import { startChild } from '../contract/child.js'
import { foreignMap } from '../support/hazelcast/foreign-map.js'
import { FakeClock } from '../support/servers/fake-clock.js'
import { startHazelcast, TEST_CLUSTER, type HazelcastServer } from '../support/servers/hazelcast.js'

const HOUR = 3_600_000
/** Lease of the process that is killed, in milliseconds. */
const LEASE = 3000
/**
 * Maximum time until the keys of the killed process are free, in milliseconds: the lease and the time that the member
 * adds, doubled for a busy machine.
 */
const FREED_WITHIN = 2 * (LEASE + 2000)

afterEach(() => vi.useRealTimers())

/** Starts a member with its own wall clock. */
async function start(): Promise<{ server: HazelcastServer; clock: FakeClock; url: string }> {
  const clock = new FakeClock()
  const server = await startHazelcast({ clock })
  onTestFinished(() => server.kill())
  return { server, clock, url: `hazelcast://${server.address}/${TEST_CLUSTER}` }
}

/** Starts a process that holds one key and waits for another. */
async function holder(url: string): Promise<Child> {
  const child = startChild('packages/conformance/dist/holder', 'signalbox', url, `${LEASE}ms`)
  onTestFinished(() => child.kill('SIGKILL'))
  await child.printed('holding')
  return child
}

describe.each([
  ['ahead', HOUR],
  ['back', -HOUR],
])('a member whose wall clock jumps %s by an hour', (_, jump) => {
  test('frees no lock of a live box', async () => {
    const { server, clock, url } = await start()
    const map = await foreignMap(server)
    await using box = await open(url)
    const grant = await box.mutex('key').acquire()
    const reading = await box.readWriteLock('shared').read.acquire({ lease: '30s', renew: false })
    clock.set(jump)
    await using later = await open(url)
    expect(await later.mutex('key').tryAcquire()).toBeUndefined()
    expect(await later.readWriteLock('shared').write.tryAcquire()).toBeUndefined()
    expect(await map.tryLock('key', 0)).toBe(false)
    for (const held of [grant, reading]) {
      held.assertHeld()
      await held.release()
    }
    await later.mutex('key', 'shared').run(() => undefined)
  })

  test('keeps no lock of a dead process for longer than its lease', async () => {
    const { clock, url } = await start()
    await using before = await open(url)
    const child = await holder(url)
    const asked = before.mutex('waited').acquire()
    await queued(before, 'waited', 1)
    clock.set(jump)
    child.kill('SIGKILL')
    await using later = await open(url)
    const took = await timed(() => later.mutex('held').acquire())
    expect(took).toBeLessThan(FREED_WITHIN)
    await (await asked).release()
  })
})

test('a box that is opened long after a process died does not wait for its lease', async () => {
  const { server, clock, url } = await start()
  const map = await foreignMap(server)
  const child = await holder(url)
  child.kill('SIGKILL')
  // The member keeps the lock of the key until its lease ends.
  expect(await map.tryLock('held', FREED_WITHIN)).toBe(true)
  await map.unlock('held')
  const taken = async (): Promise<boolean> => {
    await using later = await open(url)
    return (await later.mutex('held').tryAcquire()) !== undefined
  }
  clock.set(HOUR)
  // The clock of the member alone is not enough, because it may have jumped.
  expect(await taken()).toBe(false)
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + HOUR })
  expect(await taken()).toBe(true)
})
