import { python } from '../../test/interop/programs.js'
import { foreign } from './foreign.js'
import { zooKeeperSupport } from './zookeeper-server.js'

/** kazoo's Lock. */
export const kazoo = foreign({
  name: 'kazoo',
  program: python('kazoo_cycles.py'),
  support: zooKeeperSupport,
})
