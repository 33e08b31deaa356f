export { ExecutionError, ResourceLockedError, type ExecutionResult, type ExecutionStats } from './errors.js'
export {
  Lock,
  Redlock,
  Redlock as default,
  type RedlockAbortSignal,
  type RedlockClient,
  type Settings,
} from './redlock.js'
