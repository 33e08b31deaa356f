export { ExecutionError, ResourceLockedError, type ExecutionResult, type ExecutionStats } from './errors.js'
export { Lock, Redlock, Redlock as default, type RedlockAbortSignal } from './redlock.js'
export type { RedlockClient } from './client.js'
export type { Settings } from './settings.js'
