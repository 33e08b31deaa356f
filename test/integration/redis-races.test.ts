import { expect, test } from 'vitest'
import { races } from '../support/redis/races.js'

test('release, renewal and abort at the same moment lose no lock and leave nothing', async () => {
  const result = await races({ count: 2000, together: 700, seed: 1 })
  expect(result).toMatchObject({ wrongs: [], left: ['signalbox:1:{}:numbers'] })
  for (const often of [result.granted, result.aborted, result.timedOut, result.renewed])
    expect(often).toBeGreaterThan(50)
})
