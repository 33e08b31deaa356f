import { check, checkSync, lock, lockSync, unlock, unlockSync } from './lockfile.js'

export type { CheckOptions, LockOptions, RetryOptions, UnlockOptions } from './options.js'
export { check, checkSync, lock, lockSync, unlock, unlockSync }

/** {@link lock}, with the other functions as its properties. */
export default Object.assign(lock, { lock, unlock, check, lockSync, unlockSync, checkSync })
