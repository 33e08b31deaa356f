import { expect, test } from 'vitest'
import { LinkedEnsemble } from '../support/servers/zookeeper-ensemble.js'
import { conflicts, neverBoth, partitions, Sides } from '../support/zookeeper/partition.js'

test('a holder whose server has lost its leader is uncertain before its key is granted again', async () => {
  await using ensemble = await LinkedEnsemble.start()
  const partition = partitions['the link of the follower to its leader stalls']
  await using sides = await Sides.open(ensemble, 'place', partition, 2000)
  await neverBoth(sides, conflicts['mutex']!, partition, 0)
  expect.hasAssertions()
})
