import { open } from 'signalbox'
import { toldAddress } from './address-file.js'
import { hazelcastSupport, hazelcastUrl } from './hazelcast-server.js'
import type { LockLibrary } from './locker.js'

/** Signalbox on the Hazelcast engine. */
export const signalboxHazelcast: LockLibrary = {
  name: 'signalbox',
  support: hazelcastSupport,
  async open(folder) {
    const box = await open(hazelcastUrl(await toldAddress(folder)))
    return {
      async lock(key) {
        const grant = await box.mutex(key).acquire()
        return { token: grant.token, unlock: () => grant.release() }
      },
      close: () => box.close(),
    }
  },
}
