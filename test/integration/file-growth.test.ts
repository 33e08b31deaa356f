import { statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { pause, soFar } from '../../packages/conformance/src/time.js'
import { open } from '../../src/index.js'
import { sizeOf } from '../support/file/growth.js'
import { place } from '../support/file/places.js'

/** Calls a task with each number of a range, in several workers. */
async function each(
  from: number,
  to: number,
  task: (index: number) => Promise<unknown>,
  workers = 64,
): Promise<void> {
  let next = from
  const worker = async (): Promise<void> => {
    while (next < to) await task(next++)
  }
  await Promise.all(Array.from({ length: workers }, worker))
}

test('a hundred thousand keys that were locked once leave nothing behind', { timeout: 120_000 }, async () => {
  const here = place()
  const box = await here.box()
  const lock = (index: number): Promise<unknown> =>
    index % 10 === 0
      ? box.mutex(`key ${index}`, `other ${index}`).run(() => undefined)
      : box.mutex(`key ${index}`).run(() => undefined)
  await each(0, 20_000, lock)
  const before = await sizeOf(here)
  await each(20_000, 100_000, lock)
  const after = await sizeOf(here)
  // The only row is the counter.
  expect(after).toMatchObject({ queues: 1, requests: 0 })
  expect(after.database).toBeLessThan(before.database + 100_000)
  expect(after.memory).toBeLessThan(before.memory + 8)
})

test(
  'ids of transactions are deleted after their retention, and not before',
  { timeout: 120_000 },
  async () => {
    const here = place()
    const store = (await here.box('?durable=false')).store('s')
    const change = (index: number): Promise<{ applied: boolean }> =>
      store.transaction([`key ${index}`], transaction => transaction.delete(`key ${index}`), {
        id: 'only',
        retention: '1h',
      })
    let now = Date.now()
    vi.spyOn(Date, 'now').mockImplementation(() => now)
    // Makes the count of written rows start at 0.
    vi.spyOn(Math, 'random').mockReturnValue(0)
    await each(0, 3000, change)
    expect(await change(7)).toEqual({ applied: false })
    now += 3_599_000
    await each(3000, 6000, change)
    expect(await change(7)).toEqual({ applied: false })
    expect((await sizeOf(here)).ids).toBe(6000)
    now += 2000
    // Many IDs are recorded together, as on a busy machine. The sweep checks two IDs for each recorded one, so in the
    // end all of them.
    await each(6000, 13_000, change, 400)
    const { ids } = await sizeOf(here)
    expect(ids).toBeLessThan(10_500)
    expect(ids).toBeGreaterThanOrEqual(10_000)
    expect(await change(3007)).toEqual({ applied: false })
    expect(await change(7)).toMatchObject({ applied: true })
  },
)

test(
  'ids and rows of limits are deleted, too, when boxes are open for a short time each',
  { timeout: 120_000 },
  async () => {
    const here = place()
    const rows = async (table: string): Promise<number> =>
      (await here.connection()).prepare(`select count(*) from ${table}`).get()![0] as number
    let now = Date.now()
    vi.spyOn(Date, 'now').mockImplementation(() => now)
    let chance = 0
    vi.spyOn(Math, 'random').mockImplementation(() => (chance = (chance + 0.618) % 1))
    const use = async (name: string): Promise<void> => {
      await using box = await open(`${here.url}?durable=false`)
      const limiter = box.limiter('l', { limit: 1, per: '1s' })
      await each(0, 50, async index => {
        await box.store('s').transaction([name], () => undefined, { id: `${index}`, retention: '1h' })
        await limiter.key(`${name} ${index}`).tryAcquire()
      })
    }
    for (let box = 0; box < 60; box++) await use(`before ${box}`)
    expect(await rows('ids')).toBe(3000)
    now += 7_200_000
    for (let box = 0; box < 60; box++) await use(`after ${box}`)
    expect(await rows('ids')).toBeLessThan(5000)
    expect(await rows('limits')).toBeLessThan(5000)
  },
)

test('the log stays short while several processes write much', async () => {
  const here = place()
  const box = await here.box()
  const writers = await Promise.all(Array.from({ length: 3 }, () => here.process()))
  // Writes a hundred megabytes. No writer gets far ahead of the disk.
  const written = Promise.all(writers.map(writer => writer.call('write', 's', 170)))
  let longest = 0
  while ((await soFar(written)) === 'pending') {
    longest = Math.max(longest, statSync(join(here.folder, 'signalbox.db-wal')).size)
    await box.mutex('key').run(() => undefined)
    await pause(5)
  }
  await written
  expect(longest).toBeLessThan(40_000_000)
  expect((await sizeOf(here)).database).toBeLessThan(5_000_000)
})
