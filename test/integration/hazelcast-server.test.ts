import { Client } from 'hazelcast-client'
import { describe, expect, test } from 'vitest'
import { startHazelcast, startHazelcastCluster, TEST_CLUSTER } from '../support/servers/hazelcast.js'

async function clientOf(...addresses: string[]) {
  return Client.newHazelcastClient({
    clusterName: TEST_CLUSTER,
    network: { clusterMembers: addresses },
    connectionStrategy: { connectionRetry: { clusterConnectTimeoutMillis: 5000 } },
    properties: { 'hazelcast.logging.level': 'OFF' },
  })
}

describe('a Hazelcast member of the tests', () => {
  test('is a real member that keeps values', async () => {
    await using server = await startHazelcast()
    const client = await clientOf(server.address)
    const map = await client.getMap<string, string>('map')
    await map.set('key', 'value')
    expect(await map.replaceIfSame('key', 'value', 'other')).toBe(true)
    await client.shutdown()
  })

  test('three of them are a cluster that survives the loss of one', async () => {
    const members = await startHazelcastCluster(3)
    try {
      const client = await clientOf(members[0]!.address)
      expect(client.getCluster().getMembers()).toHaveLength(3)
      const map = await client.getMap<string, number>('map')
      for (let index = 0; index < 30; index++) await map.set(`key ${index}`, index)
      await members[1]!.kill()
      for (let index = 0; index < 30; index++) expect(await map.get(`key ${index}`)).toBe(index)
      await client.shutdown()
    } finally {
      for (const member of members) await member.kill()
    }
  })
})
