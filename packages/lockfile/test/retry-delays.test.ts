import { expect, test } from 'vitest'
import { retriesOf } from '../src/options.js'
import { retryDelays } from '../src/retry-delays.js'
import type { LockOptions } from '../src/index.js'

/** Returns the first delays of a lock with these retries. */
function delays(retries: LockOptions['retries'], count = 20): number[] {
  const found: number[] = []
  for (const delay of retryDelays(retriesOf({ retries }))) {
    if (found.push(delay) === count) break
  }
  return found
}

test.each([
  [undefined, []],
  [0, []],
  [4, [1000, 2000, 4000, 8000]],
  [{ retries: 4, maxTimeout: 3000 }, [1000, 2000, 3000, 3000]],
  [{ retries: 3, factor: 3, minTimeout: 10 }, [10, 30, 90]],
  [{ retries: 3, factor: 1, minTimeout: 5, maxTimeout: 5 }, [5, 5, 5]],
  [{}, [1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000]],
  [
    [7, 5],
    [7, 5],
  ],
])('retries %j wait for %j', (retries, expected) => {
  expect(delays(retries)).toEqual(expected)
})

test('with forever, the delays start over', () => {
  expect(delays({ forever: true, retries: 2, minTimeout: 10 }, 5)).toEqual([10, 20, 10, 20, 10])
  expect(delays({ forever: true, retries: 0, minTimeout: 10 }, 3)).toEqual([10, 10, 10])
  expect(delays(Infinity, 3)).toEqual([1000, 2000, 4000])
})

test('random delays are at most twice as long', () => {
  for (const delay of delays({ retries: 20, factor: 1, minTimeout: 100, randomize: true })) {
    expect(delay).toBeGreaterThanOrEqual(100)
    expect(delay).toBeLessThanOrEqual(200)
  }
})

test('a minimum above the maximum is an error', () => {
  expect(() => delays({ retries: 1, minTimeout: 10, maxTimeout: 5 })).toThrow(
    'minTimeout is greater than maxTimeout',
  )
})
