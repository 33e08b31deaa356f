import { Socket } from 'node:net'
import { expect, test, vi } from 'vitest'
import { open } from '../../src/index.js'
import { startHazelcast, TEST_CLUSTER } from '../support/servers/hazelcast.js'

test('an uncontended lock is acquired with one write to the connection, and released with one', async () => {
  await using member = await startHazelcast()
  await using box = await open(`hazelcast://${member.address}/${TEST_CLUSTER}`)
  const mutex = box.mutex('key')
  // The first grants also write the entries of the session.
  for (let times = 0; times < 3; times++) await (await mutex.acquire()).release()
  const writes = vi.spyOn(Socket.prototype, 'write')
  for (let times = 0; times < 20; times++) await (await mutex.acquire()).release()
  // The client also sends heartbeats.
  expect(writes.mock.calls.length).toBeLessThan(44)
})
