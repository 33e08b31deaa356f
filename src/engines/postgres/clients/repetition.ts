import type { Clock } from '../../../base/clock.js'
import { STATEMENT_TIMEOUT } from './answered.js'
import { SqlError, type Query } from './sql-client.js'

/** Maximum number of times that a statement is resent. A pool can have many connections that have ended. */
const MAX_LOSSES = 16

/** Decides how often to resend a statement that was lost with its connection. Executing it twice must be harmless. */
export class Repetition {
  /** The first error after which the statement may have been executed; undefined if there was none. */
  lost: SqlError | undefined
  readonly #clock: Clock
  readonly #until: number
  #losses = 0

  constructor(clock: Clock) {
    this.#clock = clock
    this.#until = clock.now() + STATEMENT_TIMEOUT
  }

  /** The clock time until which the statement may be resent. */
  get until(): number {
    return this.#until
  }

  /** Whether to resend the statement after this error. */
  follows(error: unknown): boolean {
    if (!(error instanceof SqlError && error.isLost)) return false
    // mutant: unclear-loss-forgotten
    if (error.isUnclear) this.lost ??= error
    return ++this.#losses <= MAX_LOSSES && this.#clock.now() < this.#until
  }
}

/** Returns a query that resends lost statements. Executing them twice must be harmless. */
export function repeated(query: Query, clock: Clock): Query {
  return async (text, values) => {
    const repetition = new Repetition(clock)
    for (;;) {
      try {
        return await query(text, values)
      } catch (error) {
        if (!repetition.follows(error)) throw error
      }
    }
  }
}
