// Opening a box
export { diagnose, open, type OpenOptions } from './open.js'
export type { Box, BoxOptions, CloseOptions, InspectOptions, LockReport, Party } from './box.js'
export type { BoxState } from './core/health.js'
export type { Duration } from './base/duration.js'
export type { SqlTransaction } from './engine/contract.js'
export type { ExistingEngine, ExistingHazelcast, ExistingRedisQuorum } from './engines/existing-engine.js'
export type { ClientLender } from './engines/postgres/clients/client-lender.js'
export type { ExistingPostgres } from './engines/postgres/existing-postgres.js'
export type { ExistingRedis, RedisOptions } from './engines/redis/redis-options.js'

// Locks
export type { Grant, WriteGrant } from './core/grant.js'
export type { Lock } from './core/lock.js'
export type { LockOptions } from './core/lock-options.js'
export type { Mutex } from './core/mutex.js'
export type { ReadWriteLock } from './core/read-write-lock.js'
export type { PermitOptions, Semaphore, SemaphoreOptions } from './core/semaphore.js'
export type { Claim, ExclusiveClaim, PermitsClaim, SharedClaim } from './engine/claim.js'

// Elections and schedules
export type { Election, LeadOptions, Leader } from './election.js'
export type { Once } from './once.js'
export type { Schedule, ScheduledTask, ScheduleOptions } from './schedule.js'
export type { CronSlots, EverySlots, NamedSlot, Slot, SlotOf, Slots, Times } from './slots.js'

// Values and transactions
export type { ListedEntry, ListOptions } from './store/list.js'
export type {
  ReadValue,
  TransactionKeys,
  TransactionOptions,
  TransactionOutcome,
  TransactionPart,
} from './store/member.js'
export type { Store, StoreOptions } from './store/store.js'
export type { StoreEntry } from './store/value.js'
export type { Transaction } from './store/transaction.js'

// Rate limits
export type { KeptLimit } from './engine/limits/report.js'
export type { LimitReport } from './engine/limits/window.js'
export type { LimiterCloseOptions } from './limits/closing.js'
export type { Amounts, Costs } from './limits/costs.js'
export type { AcquireOptions, LimitOptions, Limits, TenantOptions } from './limits/limit-options.js'
export type { Explanation } from './limits/limiter.js'
export type { Permit } from './limits/permit.js'
export type { BoxDecision, BoxLimiter, KeyedBoxLimiter } from './limits/remote/box-limiter.js'
export type { BoxLimiterOptions } from './limits/remote/box-limiter-options.js'
export type { LimiterReport } from './limits/remote/kept-limiters.js'

// Errors
export {
  AbortedError,
  BusyError,
  ClosedError,
  ConflictError,
  DamagedValueError,
  DeadlockError,
  IndeterminateError,
  InvalidArgumentError,
  LostError,
  SignalboxError,
  TimedOutError,
  UnavailableError,
  type ErrorCode,
  type ErrorContext,
  type Holder,
  type Snapshot,
} from './base/errors.js'

// Promises of engines, and findings of diagnose
export type { Guarantees, PromiseId, Weakness } from './base/guarantees.js'
export type { Diagnosis, Finding } from './engine/diagnosis.js'

// Events on diagnostics channels
export type {
  BoxEvent,
  BoxStateEvent,
  GrantedEvent,
  LimitEvent,
  LockEvent,
  LockRefusedEvent,
  LostEvent,
  PausedEvent,
  PermittedEvent,
  RefusedEvent,
  ReleasedEvent,
  ReleaseFailedEvent,
  StoreEvent,
  TransactionEvent,
  WriteEvent,
} from './base/diagnostics.js'
