import { describe, expect, test } from 'vitest'
import { nodeOf } from '../support/file/node-of.js'
import { place } from '../support/file/places.js'
import { stress } from '../support/file/stress.js'

describe.each([
  ['libsql', 20],
  ['node:sqlite', 24],
])('on %s, Node %i', (_library, major) => {
  test('four writers that are killed at random for a minute', async () => {
    const result = await stress(await nodeOf(major), place().folder, 60_000)
    console.log(result)
    expect(result.integrity).toBe('ok')
    expect(result.counter).toBe(result.sum)
    expect(Math.min(...result.each)).toBeGreaterThan(0)
    expect(result.kills).toBeGreaterThan(80)
    // While the disk or the whole machine stalls, the holder stalls, too.
    expect(result.longestLockWait).toBeLessThan(100 + result.longestStandstill)
  })
})
