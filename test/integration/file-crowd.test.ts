import { expect, test } from 'vitest'
import { locks, queued } from '../../packages/conformance/src/time.js'
import { place } from '../support/file/places.js'
import type { RemoteBox } from '../support/file/remote-box.js'
import { storm } from '../support/file/storm.js'

test('many callers with short waits leave no backlog and let others through', async () => {
  const here = place()
  const box = await here.box()
  const result = await storm({
    box,
    folder: here.folder,
    processes: 4,
    tasks: 300,
    wait: 10,
    duration: 4000,
  })
  expect(result.gaveUp).toBeGreaterThan(1000)
  expect(result.visits).toBeGreaterThan(5)
  expect(result.longestWait).toBeLessThan(1500)
  expect(result.latest).toBeLessThan(3000)
  // Boxes skip requests that they have given up.
  expect(result.ending).toBeLessThan(4000)
  expect(await locks(box)).toEqual([])
})

test('the request of a stopped process delays others no longer than its wait', async () => {
  const here = place()
  const watcher = await here.box()
  const [holder, stopped, waiter] = (await here.processes(3)) as [RemoteBox, RemoteBox, RemoteBox]
  await holder.mutex('it', ['a'])
  const wait = 600
  for (let index = 0; index < 20; index++)
    void stopped.mutex(`${index}`, ['a', `b${index}`], { wait, lease: 60_000 }).catch(() => undefined)
  await queued(watcher, 'a', 20)
  stopped.freeze()
  const waiting = waiter.mutex('it', ['a'])
  await queued(watcher, 'a', 21)
  const released = await holder.release('it')
  // Each of the twenty requests can delay the waiter by a window of a second if the lock is reserved for it.
  expect((await waiting).at - released).toBeLessThan(wait + 5000)
})

test('a wait that ends before the database is free leaves no request', async () => {
  const here = place()
  const box = await here.box()
  const connection = await here.connection()
  const counter = (): unknown => connection.prepare(`select queue from queues where key = ''`).get()![0]
  const before = counter()
  expect(connection.begin()).toBe(true)
  const waits = Array.from({ length: 50 }, (_, index) => box.mutex(`key ${index}`).acquire({ wait: 20 }))
  // Handles all rejections from the start, because the waits end at the same time, or one by one on a busy machine.
  await Promise.all(waits.map(wait => expect(wait).rejects.toMatchObject({ code: 'TIMED_OUT' })))
  connection.exec('rollback')
  await (await box.mutex('other').acquire()).release()
  // One number for the place in the queue, and one for the grant.
  expect(Number(counter()) - Number(before)).toBe(2)
})
