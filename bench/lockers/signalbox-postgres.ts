import { open } from 'signalbox'
import { toldAddress } from './address-file.js'
import type { LockLibrary } from './locker.js'
import { postgresSupport } from './postgres-server.js'

/** Signalbox on the PostgreSQL engine, over `pg`. */
export const signalboxPostgres: LockLibrary = {
  name: 'signalbox',
  support: postgresSupport,
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
