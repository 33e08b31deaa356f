/** Tests that run with vitest: `npx vitest run --root examples/testing`. */
import { IndeterminateError, LostError, TimedOutError } from 'signalbox'
import { openTestBox, type TestBox } from 'signalbox/testing'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { charge } from './charge.js'

let box: TestBox

beforeEach(async () => {
  vi.useFakeTimers()
  box = await openTestBox()
})

afterEach(async () => {
  await box.close()
  vi.useRealTimers()
})

test('gives up when another process charges for longer than five seconds', async () => {
  const other = await box.another()
  await other.mutex('invoice:42').acquire()
  const pay = vi.fn()
  const refused = expect(charge(box, '42', pay)).rejects.toThrow(TimedOutError)
  await vi.advanceTimersByTimeAsync(5000)
  await refused
  expect(pay).not.toHaveBeenCalled()
  await other.close()
})

test('keeps the lock during a long payment', async () => {
  const charged = charge(box, '42', () => new Promise(resolve => setTimeout(resolve, 3_600_000)))
  await vi.runAllTimersAsync()
  await charged
})

test('stops a payment when the lock is lost', async () => {
  const stopped = vi.fn()
  const pay = async (signal: AbortSignal): Promise<void> => {
    await new Promise(resolve => signal.addEventListener('abort', resolve))
    stopped()
  }
  const refused = expect(charge(box, '42', pay)).rejects.toThrow(LostError)
  await box.advance(0)
  box.lose('invoice:42')
  await refused
  expect(stopped).toHaveBeenCalledOnce()
})

test('does not pay when the reply to its request is lost', async () => {
  box.fail('replyLost', { operations: ['enqueue'] })
  const pay = vi.fn()
  await expect(charge(box, '42', pay)).rejects.toThrow(IndeterminateError)
  expect(pay).not.toHaveBeenCalled()
})
