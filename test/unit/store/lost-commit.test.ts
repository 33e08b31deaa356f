import { expect, test } from 'vitest'
import { IndeterminateError } from '../../../src/base/errors.js'
import { openTestBox, type Fault, type TestBox } from '../../../src/testing/index.js'

/** Adds 1 to a value with a box whose next commit has this fault. */
async function increment(box: TestBox, fault: Fault, id?: string): Promise<boolean> {
  box.fail(fault, { operations: ['commit'], times: 1 })
  const transaction = box
    .store('s')
    .transaction(['sum'], state => state.put('sum', (state.get<number>('sum') ?? 0) + 1), id ? { id } : {})
  return (await transaction).applied
}

test('a transaction whose commit did not arrive is committed by the second attempt, with and without an ID', async () => {
  await using box = await openTestBox()
  expect(await increment(box, 'requestLost')).toBe(true)
  expect(await increment(box, 'requestLost', 'id')).toBe(true)
  expect((await box.store('s').get('sum'))?.value).toBe(2)
})

test('after a lost reply, only the ID of a transaction shows that it was committed', async () => {
  await using box = await openTestBox()
  expect(await increment(box, 'replyLost', 'id')).toBe(true)
  await expect(increment(box, 'replyLost')).rejects.toThrow(IndeterminateError)
  expect((await box.store('s').get('sum'))?.value).toBe(2)
})
