import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { lock, type LockOptions } from 'proper-lockfile'
import * as ours from 'signalbox-lockfile'
import type { LockLibrary } from './locker.js'

/** A library that locks files with endless retries. Without retries, locking a locked file fails. */
function lockfile(name: string, locksFile: typeof lock, retries: LockOptions['retries']): LockLibrary {
  return {
    name,
    async open(folder, keys) {
      // proper-lockfile locks only files that exist.
      for (const key of keys) await writeFile(join(folder, key), '', { flag: 'a' })
      return {
        lock: async key => ({ unlock: await locksFile(join(folder, key), { retries }) }),
        async close() {},
      }
    },
  }
}

const BACK_OFF = { forever: true, factor: 2, minTimeout: 10, maxTimeout: 1000, randomize: true }

/** Pauses that double from 10 ms up to a second, a usual back-off. */
export const patientLockfile = lockfile('proper-lockfile', lock, BACK_OFF)

/** Signalbox with the same options. */
export const ourLockfile = lockfile('signalbox', ours.lock, BACK_OFF)

/** An attempt every 5 ms: the shortest waits for the most work. */
export const eagerLockfile = lockfile('proper-lockfile, looking every 5 ms', lock, {
  forever: true,
  factor: 1,
  minTimeout: 5,
  maxTimeout: 5,
})
