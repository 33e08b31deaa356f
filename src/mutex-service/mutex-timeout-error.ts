import { TimedOutError, type ErrorContext } from '../index.js'

/** The wait for a mutex is over, and another holder still has it. */
export class MutexTimeoutError extends TimedOutError {
  /**
   * @param mutex the name of the mutex.
   * @param waitMillis how long it was waited for, in milliseconds.
   */
  constructor(
    readonly mutex: string,
    waitMillis: number,
    context: ErrorContext,
  ) {
    super(`mutex ${mutex} was not free within ${waitMillis} ms`, { ...context, key: mutex })
  }
}
