import { afterAll, beforeAll, describe, test } from 'vitest'
import { LinkedEnsemble } from '../support/servers/zookeeper-ensemble.js'
import {
  conflicts,
  neverBoth,
  neverLost,
  partitions,
  Sides,
  type Partition,
} from '../support/zookeeper/partition.js'

/**
 * Session timeouts, in milliseconds: the minimum that servers with a tick of 500 ms allow by default, and a longer one.
 */
const TIMEOUTS = [1000, 2000] as const

let ensemble: LinkedEnsemble
let places = 0

beforeAll(async () => {
  ensemble = await LinkedEnsemble.start()
})
afterAll(() => ensemble.kill())

describe.each(Object.entries<Partition>(partitions))('while %s', (_name, partition) => {
  const opened = (timeout: number) => Sides.open(ensemble, `place-${++places}`, partition, timeout)

  test.each(Object.entries(conflicts))('%s: one holds at a time', async (_kind, conflict) => {
    const timeout = TIMEOUTS[places % 2]!
    await using sides = await opened(timeout)
    await neverBoth(sides, conflict, partition, Math.random() * timeout)
  })

  test('a transaction that lost its locks changes nothing', async () => {
    await using sides = await opened(TIMEOUTS[0])
    await neverLost(sides, partition)
  })
})
