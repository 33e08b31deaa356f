/** Tests that run with `node:test`: `node --test build/examples/testing/charge.node.js`. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, mock, test } from 'node:test'
import { LostError, TimedOutError } from 'signalbox'
import { openTestBox, type TestBox } from 'signalbox/testing'
import { charge } from './charge.js'

let box: TestBox

beforeEach(async () => {
  box = await openTestBox()
})

afterEach(() => box.close())

await test('gives up when another process charges for longer than five seconds', async () => {
  await using other = await box.another()
  await other.mutex('invoice:42').acquire()
  const pay = mock.fn()
  const refused = assert.rejects(charge(box, '42', pay), TimedOutError)
  await box.advance('5s')
  await refused
  assert.equal(pay.mock.callCount(), 0)
})

await test('loses the lock when the engine is down for longer than its lease', async () => {
  const pay = (signal: AbortSignal): Promise<void> =>
    new Promise(resolve => signal.addEventListener('abort', () => resolve()))
  const refused = assert.rejects(charge(box, '42', pay), LostError)
  await box.advance(0)
  box.fail('unreachable')
  await box.advance('10s')
  await refused
})
