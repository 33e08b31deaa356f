import { expect, test } from 'vitest'
import { NumberClock } from '../src/number-clock.js'

test('numbers rise within one microsecond, and when the clock is set back', () => {
  let micros = 1000.5
  const numbers = new NumberClock(() => micros)
  expect([numbers.next(), numbers.next(), numbers.next()]).toEqual([1000, 1001, 1002])
  micros = 2000
  expect(numbers.next()).toBe(2000)
  micros = 500
  expect(numbers.next()).toBe(2001)
})

test('a clock that is behind follows a clock that is ahead, and keeps up with it', () => {
  let micros = 1000
  const numbers = new NumberClock(() => micros)
  numbers.observe(9000)
  expect(numbers.next()).toBeGreaterThan(9000)
  micros += 500
  expect(numbers.next()).toBe(9500)
  numbers.observe(200)
  micros += 500
  expect(numbers.next()).toBe(10_000)
})

test('two clocks that follow each other do not drive each other on', () => {
  let micros = 1000
  const one = new NumberClock(() => micros)
  const other = new NumberClock(() => micros + 300)
  for (let round = 0; round < 1000; round++) {
    micros += 10
    other.observe(one.next())
    one.observe(other.next())
  }
  expect(one.next()).toBeLessThanOrEqual(micros + 300 + 2)
})
