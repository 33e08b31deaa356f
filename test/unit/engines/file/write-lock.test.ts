import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/base/clock.js'
import { WriteLock } from '../../../../src/engines/file/write-lock.js'

/** Creates a free write lock. `elders` is the number of processes that have waited longer. */
function start() {
  const clock = new VirtualClock()
  const others = { elders: 0, onLook: (): unknown => undefined }
  const board = {
    wait: () => undefined,
    leave: () => undefined,
    elders: () => {
      others.onLook()
      return others.elders
    },
  }
  return { clock, others, lock: new WriteLock({ begin: () => true }, board, clock, 1000) }
}

test('a process that waits does not begin before those that wait for longer', async () => {
  const { others, lock } = start()
  others.elders = 2
  let begun = false
  const beginning = lock.begin().then(() => (begun = true))
  const lookedAgain = new Promise<void>(resolve => {
    let looks = 0
    others.onLook = () => ++looks === 3 && resolve()
  })
  await Promise.race([beginning, lookedAgain])
  expect(begun).toBe(false)
  others.elders = 0
  await beginning
})

test('a process begins at once for a millisecond, and then only if no other one waits', () => {
  const { clock, others, lock } = start()
  expect(lock.tryBegin()).toBe(true)
  others.elders = 1
  expect(lock.tryBegin()).toBe(true)
  clock.advance(1)
  expect(lock.tryBegin()).toBe(false)
  others.elders = 0
  expect(lock.tryBegin()).toBe(true)
})
