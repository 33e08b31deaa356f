import { statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { pause, soFar } from '../../packages/conformance/src/time.js'
import { open } from '../../src/index.js'
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
  expect(statSync(join(here.folder, 'signalbox.db')).size).toBeLessThan(5_000_000)
})
