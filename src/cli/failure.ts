import { SignalboxError, type ErrorCode } from '../base/errors.js'
import { EXIT } from './exit-status.js'
import { printable } from '../base/printable.js'
import { failureText } from '../base/failure-text.js'

/** A failure whose message is all that the user needs. */
export class CommandError extends Error {
  override readonly name = 'CommandError'

  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message)
  }
}

/** Ends the command with a status and without a message. */
export class EndedWith extends CommandError {
  constructor(status: number) {
    super(`ended with status ${status}`, status)
  }
}

const STATUSES: Partial<Record<ErrorCode, number>> = {
  INVALID_ARGUMENT: EXIT.usage,
  UNAVAILABLE: EXIT.unavailable,
  INDETERMINATE: EXIT.unavailable,
  BUSY: EXIT.busy,
  TIMED_OUT: EXIT.busy,
  LOST: EXIT.lost,
}

export function statusOf(error: unknown): number {
  if (error instanceof CommandError) return error.status
  return (error instanceof SignalboxError && STATUSES[error.code]) || EXIT.failed
}

/** Renders an error as one line, with those of its causes that add something. */
export function errorLine(error: unknown): string {
  return `signalbox: ${printable(failureText(error))}\n`
}
