import { SignalboxError, type ErrorCode } from 'signalbox'
import { reasonOf } from '../reason.js'

/**
 * What a failed attempt means for its message: `locks`: not all were acquired in time; `conflict`: a write bypassed the
 * locks; `engine`: it was unreachable, or the grant was lost; `ending`: this worker can't continue; `final`: a retry
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

/** Aborts the run: to continue without the engine would lose messages. The message ends with what the user can do. */
export class RunAbortedError extends Error {
  override readonly name = 'RunAbortedError'

  constructor(what: string, options: ErrorOptions) {
    super(`${what}; continue with --resume`, options)
  }
}

/**
 * Classifies an error. One that is neither of Signalbox nor a RunAbortedError is a bug of a message type, and final.
 */
export function failureKind(error: unknown): FailureKind {
  if (error instanceof RunAbortedError) return 'ending'
  return error instanceof SignalboxError ? KINDS[error.code] : 'final'
}

/** What a worker that can't continue reports to its supervisor. It is replaced, unless the failure aborts the run. */
export interface WorkerFailure {
  readonly kind: 'failed'
  readonly reason: string
  readonly abortsRun: boolean
}

export function workerFailure(error: unknown): WorkerFailure {
  return { kind: 'failed', reason: reasonOf(error), abortsRun: error instanceof RunAbortedError }
}
