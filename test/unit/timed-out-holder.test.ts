import { expect, test } from 'vitest'
import { queued } from '../../packages/conformance/src/time.js'
import { open, type Box, type TimedOutError } from '../../src/index.js'

async function timedOut(box: Box, ...keys: readonly string[]): Promise<TimedOutError> {
  const waiting = box.mutex(...keys).acquire({ wait: 30 })
  return (await waiting.catch((error: unknown) => error)) as TimedOutError
}

test('a waiter behind another one, or for several keys, gets the last known holder, without an age', async () => {
  const url = 'memory:timed-out-holder'
  await using one = await open(url, { label: 'the box' })
  await using other = await open(url)
  await using third = await open(url)
  const held = await one.mutex('key').acquire()
  const { session } = one
  const first = await timedOut(other, 'key')
  const waiting = other.mutex('key').acquire()
  await queued(third, 'key', 1)
  const second = await timedOut(third, 'key')
  expect(first.holder).toMatchObject({ session, label: 'the box', age: expect.any(Number) as number })
  // A waiter behind another one can't know whether the holder is still the same.
  expect(second.holder).toMatchObject({ session, age: undefined })
  expect(second.message).toMatch(/ \(last known holder: "the box" on .+, pid \d+\)$/)
  expect((await timedOut(third, 'key', 'other key')).holder).toMatchObject({ session, age: undefined })
  await held.release()
  await (await waiting).release()
})
