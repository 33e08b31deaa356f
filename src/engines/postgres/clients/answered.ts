import type { Clock } from '../../../clock.js'
import { SqlError, sqlError } from './sql-client.js'

/** How long a statement may take, the way to the server and back included: milliseconds. */
export const STATEMENT_TIMEOUT = 5000

/**
 * The answer to a statement. Rejects with a SqlError, also when there is none in time.
 * @param isSent whether the statement may have been sent.
 * @param late is called when there is no answer in time.
 * @param what is waited for.
 */
export function answered<T>(
  answer: PromiseLike<T>,
  clock: Clock,
  isSent = true,
  late?: () => void,
  what = 'answer',
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(
      STATEMENT_TIMEOUT,
      () => {
        reject(new SqlError(`no ${what} within ${STATEMENT_TIMEOUT} ms`, undefined, isSent, undefined))
        late?.()
      },
      true,
    )
    answer.then(
      result => {
        timer.cancel()
        resolve(result)
      },
      (error: unknown) => {
        timer.cancel()
        reject(sqlError(error, isSent))
      },
    )
  })
}
