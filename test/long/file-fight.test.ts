import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fight } from '../support/file/fight.js'
import { place } from '../support/file/places.js'

test('a long fight of processes and threads, with hundreds of kills', async () => {
  const here = place()
  const result = await fight({
    url: here.url,
    journal: join(here.folder, 'journal'),
    processes: 8,
    threads: 4,
    rounds: 400,
    lease: 20_000,
    killEvery: 24,
    seed: 11,
  })
  console.log(result)
  expect(result).toMatchObject({ wrongs: [], failures: [], rounds: 4800 })
  expect(result.kills).toBeGreaterThan(150)
  expect(result.killedInside).toBeGreaterThan(10)
  expect(result.longestWait).toBeLessThan(20_000)
})
