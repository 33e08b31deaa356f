import { SignalboxError, type ErrorCode } from 'signalbox'

/**
 * What a failed attempt means for its message: `locks`: not all were there in time; `conflict`: a write went round the
 * locks; `engine`: it could not be reached or the grant was lost; `closing`: this process is on its way out;
 * `final`: trying again would fail in the same way.
 */
export type FailureKind = 'locks' | 'conflict' | 'engine' | 'closing' | 'final'

const KINDS: Readonly<Record<ErrorCode, FailureKind>> = {
  BUSY: 'locks',
  TIMED_OUT: 'locks',
  CONFLICT: 'conflict',
  UNAVAILABLE: 'engine',
  INDETERMINATE: 'engine',
  LOST: 'engine',
  CLOSED: 'closing',
  ABORTED: 'closing',
  DEADLOCK: 'final',
  INVALID_ARGUMENT: 'final',
}

/** Judges an error; one that is not of Signalbox is a defect of a message type, and final. */
export function failureKind(error: unknown): FailureKind {
  return error instanceof SignalboxError ? KINDS[error.code] : 'final'
}

/** What an error says, for the log and the dead-letter file. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
