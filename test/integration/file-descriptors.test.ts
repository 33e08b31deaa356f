import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { locks, until } from '../../packages/conformance/src/time.js'
import { place } from '../support/file/places.js'

/** The file descriptors that this process has open. */
function descriptors(): number {
  return readdirSync('/proc/self/fd').length
}

test.runIf(process.platform === 'linux')(
  'boxes take few descriptors each, also while all wait for each other',
  { timeout: 120_000 },
  async () => {
    const here = place()
    const count = 60
    const before = descriptors()
    const perBox = (): number => (descriptors() - before) / count
    const boxes = await Promise.all(Array.from({ length: count }, () => here.box()))
    const alone = perBox()
    const holder = await boxes[0]!.mutex('key').acquire()
    const waits = boxes.slice(1).map(async (box, index) => {
      await box.mutex('key').run(() => box.store('s').put('last', index))
    })
    await until('all wait', async () => (await locks(boxes[0]!))[0]?.waiters.length === count - 1)
    const waiting = perBox()
    await holder.release()
    await Promise.all(waits)
    // Each wakes all others at some time.
    for (let round = 1; round < 6; round++) {
      await Promise.all(
        boxes.map((_, index) => boxes[(index * 7 * round) % count]!.mutex('key').run(() => undefined)),
      )
    }
    expect(Math.max(alone, waiting, perBox())).toBeLessThan(40)
  },
)
