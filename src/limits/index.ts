export { VirtualClock, type Clock, type Timer } from '../base/clock.js'
export type { LimiterCloseOptions } from './closing.js'
export type { Amounts, Costs } from './costs.js'
export type { AcquireOptions, LimiterOptions, LimitOptions, Limits, TenantOptions } from './limit-options.js'
export type { Decision, Explanation, Limiter } from './limiter.js'
export { limiter, type LocalLimiter } from './local/local-limiter.js'
export type { Permit } from './permit.js'
export {
  joinLimiter,
  sharedLimiter,
  type SharedLimiter,
  type SharedLimiterHandle,
  type SharedLimiterOptions,
} from './threads/shared-limiter.js'
export type { LimitReport } from '../engine/limits/window.js'
