export { systemClock, type Clock, type Timer } from '../base/clock.js'
export { milliseconds, type DurationBounds } from '../base/duration.js'
export { StateMachine, type AnyEffect, type ChangedEffect, type WatchState } from './state-machine.js'
export { conflict } from './claim.js'
export * from './contract.js'
export { MemoryState } from './kit/memory-state.js'
export { Reconnector } from './kit/reconnector.js'
export { StateEngine, type EngineState, type Hint, type Moment, type Purpose } from './kit/state-engine.js'
export { TickBatcher, endOfTick, type Defer } from './kit/tick-batcher.js'
export { urlParameters } from './kit/url-parameters.js'
export type { Effect, Entry, Request, TableState } from './lock-table.js'
export type { StoreState } from './commit.js'
export type { WindowDefinition } from './limits/definition.js'
export type { KeptLimit, KeptLimiter } from './limits/report.js'
export {
  reservePermits,
  type InstantPermits,
  type LimiterState,
  type ReservePermits,
  type Reserved,
  type ReturnedPermits,
  type Unit,
} from './limits/reserve-permits.js'
