import { expect, test } from 'vitest'
import { TickBatcher } from '../../../../src/engine/kit/tick-batcher.js'

function collect() {
  const batches: number[][] = []
  const batcher = new TickBatcher<number>(() => void batches.push(batcher.take()))
  return { batches, batcher }
}

test('jobs that come during a run wait for its end', async () => {
  const batches: number[][] = []
  let end = (): void => undefined
  const batcher = new TickBatcher<number>(() => {
    batches.push(batcher.take())
    return new Promise(resolve => (end = resolve))
  })
  batcher.add(1)
  await new Promise(resolve => setImmediate(resolve))
  batcher.add(2)
  await new Promise(resolve => setImmediate(resolve))
  expect(batches).toEqual([[1]])
  end()
  await new Promise(resolve => setImmediate(resolve))
  expect(batches).toEqual([[1], [2]])
  end()
  await batcher.idle()
})

test('a waiting job can be withdrawn', async () => {
  const { batches, batcher } = collect()
  batcher.add(1)
  batcher.add(2)
  expect(batcher.withdraw(job => job === 1)).toBe(1)
  expect(batcher.withdraw(job => job === 1)).toBeUndefined()
  await batcher.idle()
  expect(batches).toEqual([[2]])
})

test('jobs that are put back come first in the next run', async () => {
  const batches: number[][] = []
  const batcher = new TickBatcher<number>(() => {
    const [first, ...rest] = batcher.take()
    batches.push([first!])
    batcher.putBack(rest)
  })
  for (const job of [1, 2, 3]) batcher.add(job)
  await batcher.idle()
  expect(batches).toEqual([[1], [2], [3]])
})
