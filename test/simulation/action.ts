import type { Claim } from '../../src/engine/claim.js'

interface Planned {
  /** When it begins, in milliseconds. */
  readonly at: number
  /** The place of the process that does it or that it happens to. */
  readonly place: number
}

/** Callers of one process take a lock, work under it and give it back. */
export interface LockAction extends Planned {
  readonly kind: 'lock'
  readonly verb: 'tryAcquire' | 'acquire' | 'run'
  /** Number of callers at the same time. */
  readonly callers: number
  readonly claims: readonly Claim[]
  /** Undefined: as long as it takes. */
  readonly wait: number | undefined
  readonly lease: number
  readonly renew: boolean
  readonly label: string | undefined
  readonly abortAfter: number | undefined
  /** How long each step of the work takes. */
  readonly steps: readonly number[]
  readonly watchesSignal: boolean
  readonly ending: 'release' | 'release twice' | 'forget' | 'downgrade'
  /** Taken and given back within the work of a `run`. */
  readonly nested: NestedLock | undefined
}

/** A lock that a task takes which holds another one already. */
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
  /** Number at the same time, each with an ID of its own unless they are twins. */
  readonly callers: number
  readonly twins: boolean
  /** The id of the change; the same one may come several times, from several processes. Undefined: without one. */
  readonly id: string | undefined
  readonly wait: number | undefined
  readonly lease: number
  readonly abortAfter: number | undefined
  readonly pause: number
  /** `moving`: the last key depends on the value of the first. `failing`: its function throws. */
  readonly variant: 'plain' | 'moving' | 'failing' | 'deleting'
}

/** A compare-and-set that adds a mark to a list round its lock. */
export interface WriteAction extends Planned {
  readonly kind: 'write'
  readonly store: string
  readonly key: string
  readonly pause: number
}

/** Follows a key of the store until the end. */
export interface WatchAction extends Planned {
  readonly kind: 'watch'
  readonly store: string
  readonly key: string
}

/** The process is gone at once, and another one takes its place. */
interface CrashAction extends Planned {
  readonly kind: 'crash'
  readonly pause: number
  /** Whether its last messages are lost, too. */
  readonly severed: boolean
  /** Whether a supervisor revokes its session. */
  readonly revoked: boolean
}

/** The process stands still. */
interface FreezeAction extends Planned {
  readonly kind: 'freeze'
  readonly duration: number
  /** Whether late timers run before messages that have arrived meanwhile. */
  readonly timersFirst: boolean
}

/** Nothing gets through between the process and the engine. */
interface CutAction extends Planned {
  readonly kind: 'cut'
  readonly duration: number
}

/** An operator inspects the locks, and takes a grant away a little later. */
export interface ForceAction extends Planned {
  readonly kind: 'force'
  readonly pause: number
  readonly seed: number
}

/** The session of another, living process is revoked. */
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

/** The engine gets a release, a renewal or a guarded commit again, or one that names an older number. */
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
