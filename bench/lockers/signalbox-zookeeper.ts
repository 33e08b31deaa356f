import { open } from 'signalbox'
import { toldAddress } from './address-file.js'
import type { LockLibrary } from './locker.js'
import { zooKeeperSupport } from './zookeeper-server.js'

/** Signalbox on the ZooKeeper engine. */
export const signalboxZooKeeper: LockLibrary = {
  name: 'signalbox',
  support: zooKeeperSupport,
  async open(folder) {
    const box = await open(`zookeeper://${await toldAddress(folder)}`)
    return {
      async lock(key) {
        const grant = await box.mutex(key).acquire()
        return { token: grant.token, unlock: () => grant.release() }
      },
      close: () => box.close(),
    }
  },
}
