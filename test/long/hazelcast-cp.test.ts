import { afterEach, expect, test, vi } from 'vitest'
import type { Box } from '../../src/box.js'
import { pause, timed } from '../../src/conformance/time.js'
import { hazelcastGuarantees } from '../../src/engines/hazelcast/guarantees.js'
import { SignalboxError } from '../../src/errors.js'
import type { Grant } from '../../src/core/grant.js'
import { open } from '../../src/open.js'
import { cpOptions, javaLike } from '../contract/hazelcast-cp-fixture.js'
import { startHazelcastCluster, TEST_CLUSTER, type HazelcastServer } from '../servers/hazelcast.js'

/** How long a box waits while a member is being missed: milliseconds. Far more than it takes. */
const WAIT = 60_000
const LEASE = 5000

let members: HazelcastServer[] = []

afterEach(async () => {
  for (const member of members) await member.kill()
})

/** Three CP members, whose maps have no copies, so that all entries which one has are lost with it. */
async function start(): Promise<string> {
  const { more = '', ...options } = cpOptions(3)
  members = await startHazelcastCluster(3, {
    ...options,
    more: `${more}<map name="*"><backup-count>0</backup-count></map>`,
  })
  return `hazelcast://${members.map(({ address }) => address).join()}/${TEST_CLUSTER}?cp=safe`
}

/** What is refused while a member is being missed; anything else is a fault. */
function checkRefusal(error: unknown): void {
  const refusals = ['UNAVAILABLE', 'INDETERMINATE', 'LOST', 'TIMED_OUT']
  if (error instanceof SignalboxError && refusals.includes(error.code)) return
  throw error
}

test('a CP member of three is killed while locks are used: no two inside, tokens rise, a FencedLock excludes', async () => {
  const url = await start()
  const boxes = await Promise.all([open(url), open(url), open(url)])
  expect(boxes[0].guarantees).toEqual(hazelcastGuarantees('safe'))
  const over = new AbortController()
  const faults: string[] = []
  let inside: Grant | undefined
  let token = 0n
  let sections = 0
  const use = async (box: Box): Promise<void> => {
    while (!over.signal.aborted) {
      try {
        await box.mutex('key').run(
          async grant => {
            if (inside && !inside.signal.aborted) faults.push(`${inside.token} and ${grant.token}`)
            if (grant.token <= token) faults.push(`${grant.token} after ${token}`)
            inside = grant
            token = grant.token
            sections++
            await pause(2)
            if (inside === grant) inside = undefined
          },
          { lease: LEASE, wait: WAIT },
        )
      } catch (error) {
        checkRefusal(error)
      }
    }
  }
  const users = boxes.map(use)
  await vi.waitUntil(() => sections > 20, { timeout: WAIT })
  await members[0]!.kill()
  const before = sections
  await vi.waitUntil(() => sections > before + 20, { timeout: WAIT })
  over.abort()
  await Promise.all(users)
  expect(faults).toEqual([])

  const foreign = await javaLike(members[1]!)
  const lock = await foreign.getCPSubsystem().getLock('key@signalbox')
  const grant = await boxes[0].mutex('key').acquire({ wait: WAIT })
  expect(await lock.tryLock(0)).toBeUndefined()
  await grant.release()
  const fence = await lock.tryLock(WAIT)
  await expect(boxes[1].mutex('key').acquire({ wait: 500 })).rejects.toMatchObject({ code: 'TIMED_OUT' })
  await lock.unlock(fence!)
  await foreign.shutdown()
  for (const box of boxes) await box.close()
})

test('what maps lose with a member the locks do not: grants are held on, tokens rise although a clock is set back', async () => {
  const url = await start()
  await using holder = await open(url)
  const options = { lease: '5m', wait: WAIT } as const
  const grant = await holder.mutex('key').acquire(options)
  const readers = await holder.readWriteLock('shared').read.acquire(options)
  await members[2]!.kill()
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 3_600_000 })
  try {
    await using other = await vi.waitFor(() => open(url), { timeout: WAIT, interval: 500 })
    await vi.waitFor(async () => expect(await other.mutex('key').tryAcquire()).toBeUndefined(), {
      timeout: WAIT,
      interval: 500,
    })
    expect(await other.readWriteLock('shared').write.tryAcquire()).toBeUndefined()
    grant.assertHeld()
    await grant.release()
    await readers.release()
    const next = await other.mutex('key').acquire(options)
    expect(next.token).toBeGreaterThan(grant.token)
    await next.release()
  } finally {
    vi.useRealTimers()
  }
})

test('without a majority nothing is granted, which is told in bounded time; a CP subsystem made anew is used', async () => {
  const url = await start()
  await using box = await open(url)
  const before = await box.mutex('key').run(grant => grant.token)
  await members[0]!.kill()
  await members[1]!.kill()
  const took = timed(async () => {
    const error: unknown = await box
      .mutex('key')
      .acquire({ wait: WAIT })
      .catch((cause: unknown) => cause)
    checkRefusal(error)
    await expect(open(url)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  })
  expect(await took).toBeLessThan(2 * WAIT)

  await members[2]!.kill()
  for (const [index, member] of members.entries()) await member.rejoin(members.slice(0, index))
  const token = await vi.waitFor(() => box.mutex('key').run(grant => grant.token, { wait: WAIT }), {
    timeout: WAIT,
    interval: 500,
  })
  expect(token).toBeGreaterThan(before)
})
