import { expect } from 'vitest'
import { open } from '../../../src/open.js'
import { queued, locks, until } from '../../../packages/conformance/src/time.js'

/** Does everything that a box can do at least once, with two boxes on a Redis URL. */
export async function doEverything(url: string): Promise<void> {
  await using one = await open(url)
  await using other = await open(url)

  const grant = await one.mutex('a', 'b').acquire({ lease: 600 })
  const asked = other.mutex('b').acquire({ label: 'second' })
  await queued(one, 'b', 1)
  expect((await locks(other, 'b'))[0]).toMatchObject({ holders: [{ session: one.session }] })
  // The grant is renewed more than once meanwhile.
  await new Promise(resolve => setTimeout(resolve, 800))
  grant.assertHeld()
  await grant.release()
  const second = await asked
  await second.release()
  expect(await one.mutex('c').tryAcquire()).toBeDefined()
  expect(await other.mutex('c').tryAcquire()).toBeUndefined()
  await expect(other.mutex('c').acquire({ wait: 50 })).rejects.toMatchObject({ code: 'TIMED_OUT' })

  const permits = [
    await one.semaphore('permits', { max: 3 }).acquire({ permits: 2 }),
    await other.semaphore('permits', { max: 3 }).acquire(),
  ]
  for (const permit of permits) await permit.release()
  const write = await one.readWriteLock('shared').write.acquire()
  const reading = other.readWriteLock('shared').read.acquire()
  await queued(one, 'shared', 1)
  await write.downgrade()
  await (await reading).release()
  await write.release()
  await Promise.all(
    Array.from({ length: 40 }, (_, index) =>
      (index % 2 === 0 ? one : other).mutex('hot').run(() => undefined),
    ),
  )

  // Enough for grants in a row to share an entry.
  const options = { limit: 1000, per: '1h' } as const
  for (const box of [one, other, one]) await box.limiter('limit', options).acquire()
  expect((await other.limiter('limit', options).explain()).limits[0]!.remaining).toBe(997)

  const leading = await one.election('leader').campaign()
  expect(await other.election('leader').leader()).toBeDefined()
  await leading.release()

  const store = one.store('s')
  const changes = other.store('s').watch('watched')
  await changes.next()
  const changed = changes.next()
  await store.put('watched', 1)
  expect((await changed).value).toMatchObject({ value: 1 })
  await changes.return()
  expect(await store.compareAndSet('watched', 0, 2)).toBeUndefined()
  await store.transaction(['x', 'y'], transaction => transaction.put('x', 1), { id: 'once' })
  const again = await other
    .store('s')
    .transaction(['x', 'y'], transaction => transaction.put('x', 2), { id: 'once' })
  expect(again).toEqual({ applied: false })
  expect((await other.store('s').get('x'))!.value).toBe(1)
  expect(await store.delete('x')).toBe(true)

  const taken = await one.mutex('taken').acquire()
  expect(await other.forceRelease('taken', taken.token)).toBe(true)
  await until('it is notified', () => taken.signal.aborted)
  const dead = await open(url)
  await dead.mutex('d', 'e').acquire()
  await dead.semaphore('f', { max: 2 }).acquire()
  expect(await one.revoke(dead.session)).toBe(2)
  await dead.close()
}
