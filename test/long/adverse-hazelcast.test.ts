import { expect, test } from 'vitest'
import { open, type Box } from '../../src/index.js'
import { hazelcast } from '../contract/hazelcast-fixture.js'
import { adverseSuite } from '../contract/suite.js'

// The client repeats the lock of a key by itself. A late lock ends with its lease.
adverseSuite(hazelcast, [
  'a caller that waits: the lock that a late request has taken is soon free',
  'a try: the lock that a late request has taken is soon free',
])

test('the lock that a late request has taken is free two seconds after its lease at the latest', async () => {
  const { network: networkOf } = hazelcast
  if (networkOf === 'none') throw new Error('Hazelcast is reached over a network')
  const lease = 4000
  const place = await hazelcast.start()
  const network = await networkOf(place)
  await using box: Box = await open({ engine: network.engine })
  await using near: Box = await open({ engine: await place.engine() })
  await box.mutex('warm').run(() => undefined)
  const deliver = network.strand()
  const grant = await box
    .mutex('key')
    .acquire({ lease, wait: '5s' })
    .catch(() => undefined)
  await grant?.release()
  await deliver()
  // Besides the lease: a second for the member, which checks for expired leases once a second, and a second for the
  // calls.
  expect(await near.mutex('key').run(() => 'free', { wait: lease + 4000 })).toBe('free')
})
