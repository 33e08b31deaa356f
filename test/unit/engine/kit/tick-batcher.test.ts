import { expect, test } from 'vitest'
import { TickBatcher } from '../../../../src/engine/kit/tick-batcher.js'

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
