import * as hazelcast from 'hazelcast-client'
import { onTestFinished } from 'vitest'
import { TEST_CLUSTER, type HazelcastServer } from '../servers/hazelcast.js'

/** A map as another program has it, which leaves when the test is over. */
export async function foreignMap({ address }: HazelcastServer, name = 'signalbox') {
  const client = await hazelcast.Client.newHazelcastClient({
    clusterName: TEST_CLUSTER,
    network: { clusterMembers: [address] },
    properties: { 'hazelcast.logging.level': 'OFF' },
  })
  onTestFinished(() => client.shutdown())
  return client.getMap(name)
}
