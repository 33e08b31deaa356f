import { expect, test } from 'vitest'
import { races } from '../support/redis/races.js'

test('100,000 times release, renewal and abort at the same moment', async () => {
  const result = await races({ count: 100_000, together: 1000, seed: 1_000_001 })
  console.log(result)
  expect(result).toMatchObject({ wrongs: [], left: ['signalbox:1:{}:numbers'] })
})
