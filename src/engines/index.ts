export { systemClock, type Clock, type Timer } from '../clock.js'
export { Decisions, type AnyEffect, type ChangedEffect, type WatchState } from './decisions.js'
export * from './engine.js'
export { MemoryState } from './memory/state.js'
export type { Effect, Entry, Request, TableState } from '../locks/table.js'
export type { StoreState } from '../store/commit.js'
export type { WindowDefinition } from '../limits/definition.js'
export {
  reserve,
  type InstantPermits,
  type LimiterState,
  type Reserve,
  type Reserved,
  type ReturnedPermits,
  type Unit,
} from '../limits/reserve.js'
