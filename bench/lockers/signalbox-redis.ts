import { open } from 'signalbox'
import type { LockLibrary } from './locker.js'
import { toldAddress } from './address-file.js'
import { redisSupport } from './redis-server.js'

/** Signalbox on the Redis engine. */
export const signalboxRedis: LockLibrary = {
  name: 'signalbox',
  support: redisSupport,
  async open(folder) {
    const box = await open(await toldAddress(folder))
    return {
      async lock(key) {
        const grant = await box.mutex(key).acquire()
        return { token: grant.token, unlock: () => grant.release() }
      },
      close: () => box.close(),
    }
  },
}
