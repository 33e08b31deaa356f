import { java } from '../../test/interop/programs.js'
import { foreign, VIRTUAL_MACHINE_WARM_UP } from './foreign.js'
import { zooKeeperSupport } from './zookeeper-server.js'

/** Curator's InterProcessMutex. */
export const curator = foreign({
  name: 'Curator',
  program: java('CuratorCycles'),
  support: zooKeeperSupport,
  warmUp: VIRTUAL_MACHINE_WARM_UP,
})
