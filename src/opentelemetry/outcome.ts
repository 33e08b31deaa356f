import { SignalboxError, type ErrorCode } from '../base/errors.js'
import { failureText } from '../base/failure-text.js'

/** Returns the outcome of a call that failed, for an attribute: one word or two for each class of errors. */
export function outcomeOf(error: unknown): string {
  return error instanceof SignalboxError ? error.code.toLowerCase().replace('_', ' ') : 'failed'
}

/** Errors that are no failures: the lock or limit is in use, or the caller has given up. */
const NO_FAILURES: ReadonlySet<ErrorCode> = new Set(['BUSY', 'ABORTED'])

/** Returns the text of a failure; undefined for an error that is an outcome like any other. */
export function failureOf(error: unknown): string | undefined {
  if (error instanceof SignalboxError && NO_FAILURES.has(error.code)) return undefined
  return failureText(error)
}
