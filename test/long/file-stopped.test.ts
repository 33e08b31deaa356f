import { expect, test } from 'vitest'
import { UnavailableError } from '../../src/base/errors.js'
import { pause, soFar, timed } from '../../packages/conformance/src/time.js'
import { place } from '../support/file/places.js'
import { StoppedWriter } from '../support/file/stopped-writer.js'

test('a caller that waits for a process stopped within a transaction is refused after 10 s', async () => {
  const here = place()
  const box = await here.box()
  const store = box.store('s')
  await store.put('key', 'before')
  const stopped = await StoppedWriter.start(here.folder)
  try {
    const start = performance.now()
    const took = await timed(async () => {
      const asked = [
        box.mutex('key').acquire(),
        store.put('key', 'meanwhile'),
        box.mutex('other').tryAcquire(),
      ]
      for (const outcome of await Promise.allSettled(asked)) {
        const reason = (outcome as PromiseRejectedResult).reason as unknown
        expect(reason).toBeInstanceOf(UnavailableError)
        expect(reason).toMatchObject({ message: expect.stringContaining('another process held') as string })
      }
    })
    expect(performance.now() - start).toBeGreaterThan(9_900)
    expect(took).toBeLessThan(20_000)
    // Reads of values do not need the stopped process.
    expect(await store.get('key')).toMatchObject({ value: 'before' })
    const asked = box.mutex('key').acquire()
    await pause(500)
    expect(await soFar(asked)).toBe('pending')
    await stopped.kill()
    await (await asked).release()
    await store.put('key', 'after')
  } finally {
    await stopped.kill()
  }
})
