/**
 * The contract of engines, and the parts that engines have in common. The errors, `Claim`, `Guarantees` and `Diagnosis`
 * are exports of `signalbox`.
 *
 * @module
 */
export { sharedClock, systemClock, wallOf, type Clock, type Timer } from '../base/clock.js'
export { milliseconds, shortDuration, type DurationBounds } from '../base/duration.js'
export { boxClosed, shown } from '../base/errors.js'
export { groupedBy } from '../base/grouped.js'
export { MAX_KEY_LENGTH, checkOptions, flag } from '../base/options.js'
export { WriteQueue } from '../base/write-queue.js'
export { StateMachine, type AnyEffect, type ChangedEffect, type WatchState } from './state-machine.js'
export { Ahead, conflict, sharedClaims } from './claim.js'
export type * from './contract.js'
export * from './wait-times.js'
export { afterSilence } from './kit/after-silence.js'
export { checkUrl } from './kit/check-url.js'
export { clockFact, clockFindings, type ClockFacts } from './kit/clock-findings.js'
export { firstKeys } from './kit/first-keys.js'
export { inTime } from './kit/in-time.js'
export { LateRequests, type LateRequestsParts } from './kit/late-requests.js'
export { MemoryState } from './kit/memory-state.js'
export { mergedFindings, type NamedDiagnosis } from './kit/merged-findings.js'
export { Reconnector } from './kit/reconnector.js'
export { StateEngine, type EngineState, type Hint, type Moment, type Purpose } from './kit/state-engine.js'
export { TickBatcher, endOfTick, type Defer } from './kit/tick-batcher.js'
export { timeOfVersion } from './kit/time-of-version.js'
export { percentDecoded, urlParameters } from './kit/url-parameters.js'
export { Withdrawals } from './kit/withdrawals.js'
export { retryUntilExpired } from './retry-until-expired.js'
export { LockTable } from './lock-table.js'
export type { Effect, Entry, Request, TableState } from './table-state.js'
export { decideCommit, type StoreState } from './commit.js'
export type { WindowDefinition } from './limits/definition.js'
export type { KeptLimit, KeptLimiter } from './limits/report.js'
export { reservePermits, type LimiterState } from './limits/reserve-permits.js'
export type { Cost } from './limits/cost.js'
export type {
  Explain,
  InstantPermits,
  ReservePermits,
  Reserved,
  ReturnedPermits,
  Unit,
  WaitingTenant,
} from './limits/reservation.js'
