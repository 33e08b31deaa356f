import { SignalboxError, type ErrorCode } from 'signalbox'
import { reasonOf } from '../reason.js'

/**
 * The kind of a failed attempt. `locks`: not all locks were acquired in time. `conflict`: a write bypassed the locks.
 * `engine`: the engine was unreachable, or the grant was lost. `ending`: this worker can't continue. `final`: a retry
 * would fail in the same way.
 */
export type FailureKind = 'locks' | 'conflict' | 'engine' | 'ending' | 'final'

const KINDS: Readonly<Record<ErrorCode, FailureKind>> = {
  BUSY: 'locks',
  TIMED_OUT: 'locks',
  CONFLICT: 'conflict',
  UNAVAILABLE: 'engine',
  INDETERMINATE: 'engine',
  LOST: 'engine',
  CLOSED: 'ending',
  ABORTED: 'ending',
  DEADLOCK: 'final',
  INVALID_ARGUMENT: 'final',
}

/** Aborts the run, because continuing without the engine would lose messages. The text advises the user. */
export class RunAbortedError extends Error {
  override readonly name = 'RunAbortedError'

  constructor(what: string, options: ErrorOptions) {
    super(`${what}; continue with --resume`, options)
  }
}

/**
 * Classifies an error. An error that is neither of Signalbox nor a RunAbortedError is a bug of a message type, and
 * final.
 */
export function failureKind(error: unknown): FailureKind {
  if (error instanceof RunAbortedError) return 'ending'
  return error instanceof SignalboxError ? KINDS[error.code] : 'final'
}

/** Report of a worker that can't continue. The supervisor replaces the worker, unless the failure aborts the run. */
export interface WorkerFailure {
  readonly kind: 'failed'
  readonly reason: string
  readonly abortsRun: boolean
}

export function workerFailure(error: unknown): WorkerFailure {
  return { kind: 'failed', reason: reasonOf(error), abortsRun: error instanceof RunAbortedError }
}
