import { startHazelcast, TEST_CLUSTER } from '../../test/support/servers/hazelcast.js'
import { tellAddress } from './address-file.js'

/** Starts a member and writes its address for the processes of one subject. Returns a function that stops it. */
export async function hazelcastSupport(folder: string): Promise<() => Promise<void>> {
  const server = await startHazelcast()
  await tellAddress(folder, server.address)
  return () => server.kill()
}

/** Returns the URL of a box on the member at an address. */
export function hazelcastUrl(address: string): string {
  return `hazelcast://${address}/${TEST_CLUSTER}`
}
