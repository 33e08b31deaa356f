import type { Claim } from '../../src/engine/claim.js'

interface Planned {
  /** Start time, in milliseconds. */
  readonly at: number
  /** The place of the process that performs the action or is affected by it. */
  readonly place: number
}

/** Callers of one process take a lock, work under it and release it. */
export interface LockAction extends Planned {
  readonly kind: 'lock'
  readonly verb: 'tryAcquire' | 'acquire' | 'run'
  /** Number of concurrent callers. */
  readonly callers: number
  readonly claims: readonly Claim[]
  /** Maximum wait, in milliseconds. Undefined: unlimited. */
  readonly wait: number | undefined
  readonly lease: number
  readonly renew: boolean
  readonly label: string | undefined
  readonly abortAfter: number | undefined
  /** Duration of each step of the work, in milliseconds. */
  readonly steps: readonly number[]
  readonly watchesSignal: boolean
  readonly ending: 'release' | 'release twice' | 'forget' | 'downgrade'
  /** A lock that is acquired and released within the task of a `run`. */
  readonly nested: NestedLock | undefined
}

/** A lock for a task that already holds one. */
export interface NestedLock {
  readonly claims: readonly Claim[]
  readonly wait: number
  readonly reentrant: boolean
}

/** A transaction that adds its mark to the list under each of its keys. */
export interface TransactionAction extends Planned {
  readonly kind: 'transaction'
  readonly store: string
  readonly keys: readonly string[]
  /** Number of concurrent callers. Each has its own ID, unless they are twins. */
  readonly callers: number
  readonly twins: boolean
  /** ID of the change. Several actions of several processes may have the same ID. Undefined: no ID. */
  readonly id: string | undefined
  readonly wait: number | undefined
  readonly lease: number
  readonly abortAfter: number | undefined
  readonly pause: number
  /**
   * `moving`: the last key depends on the value of the first. `failing`: the function throws. `deleting`: deletes the
   * last of several keys.
   */
  readonly variant: 'plain' | 'moving' | 'failing' | 'deleting'
}

/** A compare-and-set that adds a mark to a list without its lock. */
export interface WriteAction extends Planned {
  readonly kind: 'write'
  readonly store: string
  readonly key: string
  readonly pause: number
}

/** Watches a key of the store until the end. */
export interface WatchAction extends Planned {
  readonly kind: 'watch'
  readonly store: string
  readonly key: string
}

/** The process crashes, and another one takes its place. */
interface CrashAction extends Planned {
  readonly kind: 'crash'
  readonly pause: number
  /** Whether its last messages are lost, too. */
  readonly severed: boolean
  /** Whether a supervisor revokes its session. */
  readonly revoked: boolean
}

/** The process is frozen. */
interface FreezeAction extends Planned {
  readonly kind: 'freeze'
  readonly duration: number
  /** Whether late timers run before messages that have arrived meanwhile. */
  readonly timersFirst: boolean
}

/** The network between the process and the engine is cut. */
interface CutAction extends Planned {
  readonly kind: 'cut'
  readonly duration: number
}

/** An operator inspects the locks, and releases a grant by force a little later. */
export interface ForceAction extends Planned {
  readonly kind: 'force'
  readonly pause: number
  readonly seed: number
}

/** The process revokes the session of the process at the place `other`. */
interface RevokeAction extends Planned {
  readonly kind: 'revoke'
  readonly other: number
}

/** The engine ends the session of the process, and another one takes its place. */
interface ExpelAction extends Planned {
  readonly kind: 'expel'
  readonly pause: number
}

/** The process closes its box, and another one takes its place. */
export interface CloseAction extends Planned {
  readonly kind: 'close'
  readonly drain: number | undefined
  readonly pause: number
}

/** The engine receives a release, a renewal or a guarded commit again, or one that names an older number. */
export interface RepeatAction extends Planned {
  readonly kind: 'repeat'
  readonly seed: number
}

export type Action =
  | LockAction
  | TransactionAction
  | WriteAction
  | WatchAction
  | CrashAction
  | FreezeAction
  | CutAction
  | ForceAction
  | RevokeAction
  | ExpelAction
  | CloseAction
  | RepeatAction
