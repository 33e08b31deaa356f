import { startZooKeeper } from '../../test/support/servers/zookeeper.js'
import { tellAddress } from './address-file.js'

/** Starts a server and writes its address for the processes of one subject. Returns a function that stops it. */
export async function zooKeeperSupport(folder: string): Promise<() => Promise<void>> {
  const server = await startZooKeeper()
  await tellAddress(folder, server.address)
  return () => server.stop()
}
