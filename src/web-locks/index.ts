export {
  lockManager,
  type Lock,
  type LockInfo,
  type LockManager,
  type LockManagerSnapshot,
} from './lock-manager.js'
export type { LockMode, LockOptions } from './lock-request.js'
