import { open } from 'signalbox'
import type { LockLibrary } from './locker.js'

/** Signalbox on the file engine. */
export const signalboxFile: LockLibrary = {
  name: 'signalbox',
  async open(folder) {
    const box = await open(`file:${folder}`)
    return {
      async lock(key) {
        const grant = await box.mutex(key).acquire()
        return { token: grant.token, unlock: () => grant.release() }
      },
      close: () => box.close(),
    }
  },
}
