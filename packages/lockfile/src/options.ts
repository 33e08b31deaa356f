import { resolve } from 'node:path'
import { disk, type FileSystem } from './file-system.js'

/** Number and delays of the retries of `lock`, as in the package `retry`. */
export interface RetryOptions {
  /** Number of retries after the first attempt. Default: 10. */
  retries?: number | undefined
  /** The factor by which each delay is longer than the one before. Default: 2. */
  factor?: number | undefined
  /** The first delay, in milliseconds. Default: 1000. */
  minTimeout?: number | undefined
  /** Maximum delay, in milliseconds. Default: no maximum. */
  maxTimeout?: number | undefined
  /** Whether each delay is multiplied by a random number from 1 to 2. Default: false. */
  randomize?: boolean | undefined
  /** Whether the delays start over when all have passed. Default: false. */
  forever?: boolean | undefined
  /** Whether the process may end while it waits. Default: false. */
  unref?: boolean | undefined
  /** Maximum time of all attempts, in milliseconds. Default: no maximum. */
  maxRetryTime?: number | undefined
}

/** Options of `unlock` and `unlockSync`. */
export interface UnlockOptions {
  /** Whether to resolve symbolic links of the path, which must then exist. Default: true. */
  realpath?: boolean | undefined
  /**
   * A file system with the callback functions of `node:fs`, and their Sync forms for the Sync functions. With this
   * option, a lock works only as in proper-lockfile: a dead holder is noticed after `stale`, and waiters poll. Default:
   * `node:fs`.
   */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- Any file system that has the functions, as in @types/proper-lockfile.
  fs?: any
  /** The folder that is the lock. Default: the path of the file with `.lock` appended. */
  lockfilePath?: string | undefined
}

/** Options of `check` and `checkSync`. */
export interface CheckOptions extends UnlockOptions {
  /** Time without an update after which a lock is stale, in milliseconds. Minimum: 2000. Default: 10000. */
  stale?: number | undefined
}

/** Options of `lock` and `lockSync`. */
export interface LockOptions extends CheckOptions {
  /** Interval between updates of the lock, in milliseconds, from 1000 to half of `stale`. Default: half of `stale`. */
  update?: number | undefined
  /**
   * Number of retries, options of the retries, or the delays before each retry in milliseconds. A waiter is also woken
   * by a release. Default: 0.
   */
  retries?: number | RetryOptions | number[] | undefined
  /**
   * Called when the lock was removed, or not updated for the time `stale`. The error has the code `ECOMPROMISED`.
   * Default: emits a process warning with that code. proper-lockfile throws the error in a timer, which ends the
   * process.
   */
  onCompromised?: ((error: Error) => unknown) | undefined
}

/** Minimum of `stale`, in milliseconds: a lock that was updated since is not taken over. */
export const MIN_STALE = 2000
/** Minimum of `update`, in milliseconds. */
const MIN_UPDATE = 1000
const DEFAULT_STALE = 10_000

/** Returns the time after which a lock is stale, in milliseconds. */
export function staleOf({ stale = DEFAULT_STALE }: CheckOptions): number {
  return Math.max(stale || 0, MIN_STALE)
}

/** Returns the interval between updates, in milliseconds. */
export function updateOf({ update }: LockOptions, stale: number): number {
  const wanted = update ?? stale / 2
  return Math.max(Math.min(wanted || 0, stale / 2), MIN_UPDATE)
}

/** Options of the retries. */
export interface Retries extends RetryOptions {
  /** The delays, instead of computed ones. */
  readonly delays?: readonly number[]
}

/** Returns the options of the retries, as an object. */
export function retriesOf({ retries }: LockOptions): Retries {
  if (Array.isArray(retries)) return { delays: retries }
  return typeof retries === 'object' && retries !== null ? retries : { retries: retries || 0 }
}

/** Returns the path of the folder that locks a file. */
export function folderOf(file: string, { lockfilePath }: UnlockOptions): string {
  return resolve(lockfilePath || `${file}.lock`)
}

/** Returns the file system of the caller, or the disk. */
export function fileSystemOf({ fs }: UnlockOptions): FileSystem {
  return (fs ?? disk) as FileSystem
}
