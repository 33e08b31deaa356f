const { LostError, TimedOutError } = require('signalbox')
const { openTestBox } = require('signalbox/testing')
const { charge } = require('./charge')

/** Jest lets a replaced module use variables whose names begin with `mock`. */
let mockBox

jest.mock('signalbox', () => ({ ...jest.requireActual('signalbox'), open: () => mockBox.another() }))

beforeEach(async () => {
  jest.useFakeTimers()
  mockBox = await openTestBox()
})

afterEach(async () => {
  await mockBox.close()
  jest.useRealTimers()
})

test('gives up when another process charges for longer than five seconds', async () => {
  await mockBox.mutex('invoice:42').acquire()
  const pay = jest.fn()
  const refused = expect(charge('42', pay)).rejects.toThrow(TimedOutError)
  await jest.advanceTimersByTimeAsync(5000)
  await refused
  expect(pay).not.toHaveBeenCalled()
})

test('keeps the lock during a long payment, and leaves no timer', async () => {
  const charged = charge('42', () => new Promise(resolve => setTimeout(resolve, 3_600_000)))
  await jest.runAllTimersAsync()
  await charged
  await mockBox.close()
  expect(jest.getTimerCount()).toBe(0)
})

test('fails when the lock is lost', async () => {
  const pay = signal => new Promise(resolve => signal.addEventListener('abort', resolve))
  const refused = expect(charge('42', pay)).rejects.toThrow(LostError)
  await mockBox.advance(0)
  mockBox.lose('invoice:42')
  await refused
})
