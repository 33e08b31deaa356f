import { expect, test } from 'vitest'
import { Withdrawals } from '../../../../src/engine/kit/withdrawals.js'
import { lockRequest } from '../../../support/lock-request.js'

const a = lockRequest('a')
const b = lockRequest('b')
const unknown = lockRequest('unknown')

test('an enqueue can be withdrawn until a transaction has reached it', () => {
  const withdrawals = new Withdrawals()
  withdrawals.sent(a)
  withdrawals.sent(b)
  expect(withdrawals.withdraw(a)).toBe(true)
  expect(withdrawals.reached(a)).toBe(true)
  expect(withdrawals.reached(b)).toBe(false)
  expect(withdrawals.withdraw(b)).toBe(false)
  expect(withdrawals.withdraw(unknown)).toBe(false)
})

test('an operation that was rolled back is done again, and its cancellation follows', () => {
  const withdrawals = new Withdrawals()
  withdrawals.sent(a)
  expect(withdrawals.reached(a)).toBe(false)
  expect(withdrawals.withdraw(a)).toBe(false)
  expect(withdrawals.reached(a)).toBe(false)
})

test('a withdrawn enqueue stays withdrawn in a repeated transaction, until its answer', () => {
  const withdrawals = new Withdrawals()
  withdrawals.sent(a)
  withdrawals.withdraw(a)
  expect(withdrawals.reached(a)).toBe(true)
  expect(withdrawals.reached(a)).toBe(true)
  withdrawals.answered(a)
  expect(withdrawals.withdraw(a)).toBe(false)
})
