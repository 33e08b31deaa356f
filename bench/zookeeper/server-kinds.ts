import { mkdtemp, rm } from 'node:fs/promises'
import { startZooKeeperEnsemble } from '../../test/support/servers/zookeeper-ensemble.js'
import { startZooKeeper, type ZooKeeperServerOptions } from '../../test/support/servers/zookeeper.js'
import { tellAddress } from '../lockers/address-file.js'
import { zooKeeperSupport } from '../lockers/zookeeper-server.js'

/** A kind of server. Kinds differ in what delays a write. */
interface ServerKind {
  readonly name: string
  readonly support: typeof zooKeeperSupport
}

/** Linux keeps files in this folder in memory. */
const RAM_DISK = '/dev/shm/'

async function alone(folder: string, options: ZooKeeperServerOptions): Promise<() => Promise<void>> {
  const server = await startZooKeeper(options)
  await tellAddress(folder, server.address)
  return () => server.stop()
}

/** All kinds. The others are compared with the first one. */
export const serverKinds: readonly ServerKind[] = [
  { name: 'one server', support: zooKeeperSupport },
  {
    name: 'three servers',
    async support(folder) {
      const ensemble = await startZooKeeperEnsemble()
      await tellAddress(folder, ensemble.address)
      return () => ensemble.stop()
    },
  },
  {
    name: 'one server on a RAM disk',
    async support(folder) {
      const data = await mkdtemp(`${RAM_DISK}signalbox-bench-`)
      const stop = await alone(folder, { config: [`dataDir=${data}`] })
      return async () => {
        await stop()
        await rm(data, { recursive: true })
      }
    },
  },
  {
    name: 'one server with forceSync=no',
    support: folder => alone(folder, { properties: { 'zookeeper.forceSync': 'no' } }),
  },
]
