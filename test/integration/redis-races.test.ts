import { join } from 'node:path'
import { expect, test } from 'vitest'
import { locks } from '../../packages/conformance/src/time.js'
import { fight } from '../support/file/fight.js'
import { RedisPlace } from '../support/redis/place.js'
import { races } from '../support/redis/races.js'

test('release, renewal and abort at the same moment lose no lock and leave nothing', async () => {
  const result = await races({ count: 2000, together: 700, seed: 1 })
  expect(result).toMatchObject({ wrongs: [], left: ['signalbox:1:{}:numbers'] })
  for (const often of [result.granted, result.aborted, result.timedOut, result.renewed])
    expect(often).toBeGreaterThan(50)
})

test('processes that want several of six keys, in any order, are all served although some are killed', async () => {
  await using here = await RedisPlace.start()
  const result = await fight({
    url: here.server.url,
    journal: join(here.server.folder, 'journal'),
    processes: 4,
    threads: 0,
    rounds: 20,
    lease: 3000,
    killEvery: 12,
    seed: 3,
  })
  expect(result).toMatchObject({ wrongs: [], failures: [], rounds: 80 })
  expect(result.kills).toBeGreaterThan(3)
  expect(await locks(await here.box())).toEqual([])
})
