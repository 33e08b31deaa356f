import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fight } from '../support/file/fight.js'
import { place } from '../support/file/places.js'

test(
  'processes that are killed at random, and threads, exclude each other on several keys',
  { timeout: 120_000 },
  async () => {
    const here = place()
    const result = await fight({
      url: here.url,
      journal: join(here.folder, 'journal'),
      processes: 8,
      threads: 2,
      rounds: 50,
      lease: 20_000,
      killEvery: 20,
      seed: 7,
    })
    expect(result).toMatchObject({ wrongs: [], failures: [], rounds: 500 })
    expect(result.kills).toBeGreaterThan(15)
    expect(result.killedInside).toBeGreaterThan(0)
    expect(result.longestWait).toBeLessThan(10_000)
    // The processes that died have left nothing behind.
    const box = await here.box()
    const reports = []
    for await (const report of box.inspect()) reports.push(report)
    expect(reports).toEqual([])
  },
)
