import type { Clock } from '../../../base/clock.js'
import { inTime } from '../../../engine/kit/in-time.js'
import { SqlError, sqlError } from './sql-client.js'

/** Maximum time of a statement, including both ways between client and server, in milliseconds. */
export const STATEMENT_TIMEOUT = 5000

/**
 * Returns the reply to a statement. Rejects with a SqlError, also if no reply arrives in time.
 * @param isSent whether the statement may have been sent.
 * @param late is called when no reply arrives in time.
 * @param what to name in the error.
 */
export function answered<T>(
  answer: PromiseLike<T>,
  clock: Clock,
  isSent = true,
  late?: () => void,
  what?: string,
): Promise<T> {
  const tooLate = (): Error => {
    late?.()
    return noAnswer(STATEMENT_TIMEOUT, isSent, what)
  }
  return inTime(answer, STATEMENT_TIMEOUT, clock, tooLate).catch((error: unknown) => {
    throw sqlError(error, isSent)
  })
}

/** Returns the error for a reply that did not arrive in time. */
export function noAnswer(limit: number, isSent: boolean, what = 'answer'): SqlError {
  return new SqlError(`no ${what} within ${Math.ceil(limit)} ms`, undefined, isSent, undefined)
}
