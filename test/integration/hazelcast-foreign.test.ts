import { afterAll, expect, test } from 'vitest'
import { pause, soFar, until } from '../../packages/conformance/src/time.js'
import { open } from '../../src/open.js'
import { foreignMap } from '../support/hazelcast/foreign-map.js'
import { startHazelcast, TEST_CLUSTER } from '../support/servers/hazelcast.js'

/** Maximum duration of a test, in milliseconds. Far more than needed. */
const BOUND = 30_000

const server = await startHazelcast()
afterAll(() => server.kill())
const url = `hazelcast://${server.address}/${TEST_CLUSTER}`

test('a waiter that loses a key while it waits for another one waits for both again before its lease ends', async () => {
  const map = await foreignMap(server)
  await using box = await open(url)
  expect(await map.tryLock('lost b', 0)).toBe(true)
  const waiting = box.mutex('lost a', 'lost b').acquire({ lease: '10m' })
  // Waits until the attempt to lock both keys together has failed.
  await pause(500)
  await until('the first is locked', () => map.isLocked('lost a'))
  await until('another program has it', async () => {
    await map.forceUnlock('lost a')
    return map.tryLock('lost a', 0)
  })
  await map.unlock('lost b')
  await pause(500)
  expect(await soFar(waiting)).toBe('pending')
  await map.unlock('lost a')
  const grant = await waiting
  for (const key of ['lost a', 'lost b']) expect(await map.tryLock(key, 0)).toBe(false)
  await grant.release()
})

test('another program gets a key between callers of a box that always want it, and returns it to them', async () => {
  const map = await foreignMap(server)
  await using box = await open(url)
  const over = new AbortController()
  let last = 0n
  let turns = 0
  let isForeign = false
  const tasks = Array.from({ length: 4 }, async () => {
    while (!over.signal.aborted)
      await box.mutex('busy').run(async grant => {
        expect(isForeign).toBe(false)
        expect(grant.token).toBeGreaterThan(last)
        last = grant.token
        turns++
        await pause(0)
      })
  })
  for (let round = 0; round < 50; round++) {
    expect(await map.tryLock('busy', BOUND)).toBe(true)
    isForeign = true
    await pause(round % 10 === 0 ? 100 : 1)
    isForeign = false
    const before = turns
    await map.unlock('busy')
    await until('the box has it again', () => turns > before)
  }
  over.abort()
  await Promise.all(tasks)
})
