import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { lock, type LockOptions } from 'proper-lockfile'
import type { LockLibrary } from './locker.js'

/** proper-lockfile fails at a locked file unless it has a number of retries; this retries without limit. */
function properLockfile(name: string, retries: LockOptions['retries']): LockLibrary {
  return {
    name,
    async open(folder, keys) {
      // It locks files that exist.
      for (const key of keys) await writeFile(join(folder, key), '', { flag: 'a' })
      return {
        lock: async key => ({ unlock: await lock(join(folder, key), { retries }) }),
        async close() {},
      }
    },
  }
}

/** Pauses that double from 10 ms up to a second, as one configures a back-off. */
export const patientLockfile = properLockfile('proper-lockfile', {
  forever: true,
  factor: 2,
  minTimeout: 10,
  maxTimeout: 1000,
  randomize: true,
})

/** A look every 5 ms: the least waiting for the most work. */
export const eagerLockfile = properLockfile('proper-lockfile, looking every 5 ms', {
  forever: true,
  factor: 1,
  minTimeout: 5,
  maxTimeout: 5,
})
