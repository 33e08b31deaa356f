import { expect, test } from 'vitest'
import { block, pause, timed } from '../src/time.js'

test('a time is counted without those in which the process stands still', async () => {
  expect(await timed(() => pause(300))).toBeGreaterThan(99)
  const stalled = await timed(async () => {
    block(500)
    await pause(0)
    block(500)
  })
  expect(stalled).toBeGreaterThanOrEqual(100)
  expect(stalled).toBeLessThan(800)
})

test('what fails while it is timed rejects', async () => {
  await expect(timed(() => Promise.reject(new Error('on purpose')))).rejects.toThrow('on purpose')
})
