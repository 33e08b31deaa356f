import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { pause, queued, until } from '../../packages/conformance/src/time.js'
import { place } from '../support/file/places.js'
import type { RemoteBox } from '../support/file/remote-box.js'

/** Leases far longer than these tests, so locks become free only because a death was noticed. */
const LONG = { lease: 60_000 }

/** Kills the box, and returns the milliseconds until a waiter got its grant. */
async function handOver(
  dead: RemoteBox,
  waiting: Promise<{ at: number }>,
  kill = (box: RemoteBox) => box.kill(),
): Promise<number> {
  const killed = await kill(dead)
  return (await waiting).at - killed
}

function socketsIn(folder: string): string[] {
  return readdirSync(folder).filter(name => name.endsWith('.box'))
}

test('what several boxes of a killed process held is free at once', async () => {
  const here = place()
  const watcher = await here.box()
  const holder = await here.process()
  await holder.mutex('one', ['a'], LONG)
  await holder.call('open', here.url)
  await holder.mutex('two', ['b'], LONG)
  await holder.call('open', here.url)
  await holder.mutex('three', ['c'], LONG)
  // The process has one socket for all its boxes, and so has this process.
  expect(socketsIn(here.folder)).toHaveLength(2)
  const waiting = watcher.mutex('a').acquire(LONG)
  await queued(watcher, 'a', 1)
  await holder.kill()
  await waiting
  // Nobody waits for the other keys, so the first box that died must have freed them.
  expect(await watcher.mutex('b').tryAcquire(LONG)).toBeDefined()
  expect(await watcher.mutex('c').tryAcquire(LONG)).toBeDefined()
  await until('its socket is removed', () => socketsIn(here.folder).length === 1)
})

test('the waiter behind one that gave up notices the death of the holder', async () => {
  const here = place()
  const watcher = await here.box()
  const [first, second, third, fourth] = await here.fourProcesses()
  await first.mutex('it', ['a'], LONG)
  const next = second.mutex('it', ['a'], LONG)
  await queued(watcher, 'a', 1)
  const given = third.mutex('it', ['a'], LONG)
  await queued(watcher, 'a', 2)
  const waiting = fourth.mutex('it', ['a'], LONG)
  await queued(watcher, 'a', 3)
  await first.release('it')
  await next
  const gone = expect(given).rejects.toMatchObject({ code: 'CLOSED' })
  await third.call('close')
  await gone
  await queued(watcher, 'a', 1)
  expect(await handOver(second, waiting)).toBeLessThan(500)
})

test('of several keys, the death of a later holder of any of them is noticed', async () => {
  const here = place()
  const watcher = await here.box()
  const [a, b, later, both] = await here.fourProcesses()
  await a.mutex('it', ['a'], LONG)
  await b.mutex('it', ['b'], LONG)
  const next = later.mutex('it', ['b'], LONG)
  await queued(watcher, 'b', 1)
  const waiting = both.mutex('it', ['a', 'b'], LONG)
  await queued(watcher, 'b', 2)
  await b.release('it')
  await next
  await a.release('it')
  await pause(50)
  expect(await handOver(later, waiting)).toBeLessThan(500)
})

test('the death of any of several readers lets the writer in', async () => {
  const here = place()
  const watcher = await here.box()
  const readers = await here.fourProcesses()
  for (const [place, reader] of readers.entries()) {
    await reader.call('acquire', 'it', [{ key: 'a', mode: 'shared' }], { ...LONG, label: `reader ${place}` })
  }
  const writer = await here.process()
  const waiting = writer.mutex('it', ['a'], LONG)
  await queued(watcher, 'a', 1)
  for (const reader of [readers[0], readers[3], readers[1]]) await reader.release('it')
  expect(await handOver(readers[2], waiting)).toBeLessThan(500)
})

test.each([
  ['killed', (thread: RemoteBox) => thread.kill()],
  ['terminated', (thread: RemoteBox) => thread.terminate()],
])('a thread that is %s frees its locks at once, and its process goes on', async (_, kill) => {
  const here = place()
  const watcher = await here.box()
  const [dead, alive] = [await here.thread(), await here.thread()]
  const process = await here.process()
  await dead.mutex('it', ['a'], LONG)
  const waiting = process.mutex('it', ['a'], LONG)
  await queued(watcher, 'a', 1)
  const behind = alive.mutex('it', ['a'], LONG)
  await queued(watcher, 'a', 2)
  expect(await handOver(dead, waiting, kill)).toBeLessThan(500)
  const released = await process.release('it')
  expect((await behind).at - released).toBeLessThan(500)
})

test('a holder without its socket file does not count as dead', async () => {
  const here = place()
  const holder = await here.process()
  await holder.mutex('it', ['a'], LONG)
  for (const name of readdirSync(here.folder)) if (name.endsWith('.box')) rmSync(join(here.folder, name))
  const waiter = await here.process()
  await expect(waiter.mutex('it', ['a'], { ...LONG, wait: 300 })).rejects.toMatchObject({ code: 'TIMED_OUT' })
  await holder.call('assertHeld', 'it')
  await holder.release('it')
  await waiter.mutex('it', ['a'], LONG)
})
