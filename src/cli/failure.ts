import { SignalboxError, type ErrorCode } from '../errors.js'
import { EXIT } from './exit-status.js'
import { printable } from './printable.js'
import { withoutSecrets } from '../secrets.js'

/** What was asked for can't be done; the message is all that the user needs to know. */
export class CommandError extends Error {
  override readonly name = 'CommandError'

  /** @param status the exit status that it stands for. */
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message)
  }
}

/** The command line is carried out, with a status that needs no words. */
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

/** The exit status that an error stands for. */
export function statusOf(error: unknown): number {
  if (error instanceof CommandError) return error.status
  return (error instanceof SignalboxError && STATUSES[error.code]) || EXIT.failed
}

/** An error as the one line that is printed, with its causes as far as they tell more. */
export function complaint(error: unknown): string {
  const messages: string[] = []
  for (let at = error; at instanceof Error; at = at.cause) {
    const { message } = at
    if (!messages.some(known => known.includes(message))) messages.push(message)
  }
  return `signalbox: ${printable(withoutSecrets(messages.join(': ')))}\n`
}
