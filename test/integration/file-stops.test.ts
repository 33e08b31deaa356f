import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.js'
import { locks, pause, queued, soFar } from '../../packages/conformance/src/time.js'
import { place } from '../support/file/places.js'
import type { RemoteBox } from '../support/file/remote-box.js'

const LEASE = 1500
/** Minimum time until a lease expires after a stop, in milliseconds. The last renewal was at most a third of it ago. */
const LEAST = (LEASE * 2) / 3
/** Maximum time between the end of a lease or a window and the start of its waiter, in milliseconds. */
const SLACK = 1500
const LONG = { lease: 60_000 }

type Three = [RemoteBox, RemoteBox, RemoteBox]

test('a stopped holder keeps its grant until its lease is over, and finds it lost', async () => {
  const here = place()
  const watcher = await here.box()
  const [holder, waiter] = (await here.processes(2)) as [RemoteBox, RemoteBox]
  await holder.mutex('it', ['a'], { lease: LEASE })
  const waiting = waiter.mutex('it', ['a'], LONG)
  await queued(watcher, 'a', 1)
  holder.freeze()
  const frozen = systemClock.now()
  const { at, token } = await waiting
  expect(at - frozen).toBeGreaterThan(LEAST - 50)
  expect(at - frozen).toBeLessThan(LEASE + SLACK)
  holder.thaw()
  await expect(holder.call('assertHeld', 'it')).rejects.toMatchObject({ code: 'LOST' })
  await expect(holder.release('it')).rejects.toMatchObject({ code: 'LOST' })
  // The grant of the new holder is unaffected.
  await waiter.call('assertHeld', 'it')
  const [report] = await locks(watcher, 'a')
  expect(report).toMatchObject({ holders: [{ session: waiter.session, token }], waiters: [] })
})

test('the commit of a process that was stopped past its lease is rejected', async () => {
  const here = place()
  const [stopped, other] = (await here.processes(2)) as [RemoteBox, RemoteBox]
  await other.call('put', 'trains', '101', 'there')
  const inside = stopped.inside()
  const committing = stopped.call('transactionOver', 'trains', '101', 'stale', LEASE / 2, LEASE)
  await inside
  stopped.freeze()
  const { token } = await other.mutex('it', ['trains/101'], LONG)
  await other.call('put', 'trains', '101', 'newer')
  stopped.thaw()
  await expect(committing).rejects.toMatchObject({ code: 'LOST' })
  expect(await other.call('get', 'trains', '101')).toBe('newer')
  await other.call('assertHeld', 'it')
  expect(token).toBeGreaterThan(0n)
})

test('a stopped waiter misses its window, the next one is served, and the stopped one gets no grant', async () => {
  const here = place()
  const watcher = await here.box()
  const [first, frozen, next] = (await here.processes(3)) as Three
  await first.mutex('it', ['a'], LONG)
  const late = frozen.mutex('it', ['a'], LONG)
  await queued(watcher, 'a', 1)
  const waiting = next.mutex('it', ['a'], LONG)
  await queued(watcher, 'a', 2)
  frozen.freeze()
  const released = await first.release('it')
  const { at, token } = await waiting
  // A claim window is one second.
  expect(at - released).toBeGreaterThan(900)
  expect(at - released).toBeLessThan(1100 + SLACK)
  frozen.thaw()
  await queued(watcher, 'a', 1)
  await pause(200)
  expect(await soFar(late)).toBe('pending')
  await next.call('assertHeld', 'it')
  await next.release('it')
  expect((await late).token).toBeGreaterThan(token)
})
