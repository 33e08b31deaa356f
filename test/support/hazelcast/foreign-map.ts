import * as hazelcast from 'hazelcast-client'
import { onTestFinished } from 'vitest'
import { TEST_CLUSTER, type HazelcastServer } from '../servers/hazelcast.js'

/** Opens a client of the member, as another program does. It shuts down when the test ends. */
export async function foreignClient({ address }: HazelcastServer): Promise<hazelcast.Client> {
  const client = await hazelcast.Client.newHazelcastClient({
    clusterName: TEST_CLUSTER,
    // With smart routing it would use the address that a member names to clients, which may be that of a proxy.
    network: { clusterMembers: [address], smartRouting: false },
    properties: { 'hazelcast.logging.level': 'OFF' },
  })
  onTestFinished(() => client.shutdown())
  return client
}

/** Returns a map of such a client. */
export async function foreignMap(server: HazelcastServer, name = 'signalbox') {
  const client = await foreignClient(server)
  return client.getMap(name)
}
