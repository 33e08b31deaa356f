import { expect, test } from 'vitest'
import { queued } from '../../packages/conformance/src/time.js'
import { place } from '../support/file/places.js'

/** Leases far longer than these tests, so locks become free only because their holder is dead. */
const LONG = { lease: 60_000 }

test("a forked process does not keep the box, so its parent's end frees the locks", async () => {
  const here = place()
  const parent = await here.process()
  await parent.mutex('it', ['key'], LONG)
  const child = await parent.call('fork')
  await parent.kill()
  const other = await here.process()
  await other.mutex('it', ['key'], LONG)
  // Throws if the child has already ended.
  process.kill(child, 'SIGKILL')
})

test('workers of a cluster and its primary have boxes of their own, which exclude and wake each other', async () => {
  const here = place()
  const primary = await here.box()
  const [first, second] = [await here.worker(), await here.worker()]
  expect(new Set([primary, first, second].map(({ session }) => session)).size).toBe(3)
  const grant = await primary.mutex('key').acquire(LONG)
  const waiting = first.mutex('it', ['key'], LONG)
  await queued(primary, 'key', 1)
  const behind = second.mutex('it', ['key'], LONG)
  await queued(primary, 'key', 2)
  await expect(primary.mutex('key').tryAcquire()).resolves.toBeUndefined()
  await grant.release()
  await waiting
  await first.release('it')
  await behind
})
