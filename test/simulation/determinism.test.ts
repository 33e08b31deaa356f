import { expect, test } from 'vitest'
import { simulate } from './simulate.js'
import { sources } from './sources.js'

test('the same seed gives the same history', async () => {
  for (let seed = 1; seed <= 8; seed++) {
    const first = await simulate(seed, sources)
    const second = await simulate(seed, sources)
    expect(second.history.fingerprint(), `seed ${seed}`).toBe(first.history.fingerprint())
  }
})

test('another seed gives another history', async () => {
  const [first, second] = [await simulate(1, sources), await simulate(2, sources)]
  expect(second.history.fingerprint()).not.toBe(first.history.fingerprint())
})
