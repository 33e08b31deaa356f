import type { Clock } from '../../../base/clock.js'
import { inTime } from '../../../engine/kit/in-time.js'
import { noAnswer, STATEMENT_TIMEOUT } from './answered.js'
import { SqlError, type Query } from './sql-client.js'

/** Maximum number of times that a statement is resent. A pool can have many connections that have ended. */
const MAX_LOSSES = 16

/** Minimum time limit of a statement, in milliseconds: several round trips over a slow link. */
const MIN_TIME = 2000

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

/**
 * Returns a query that ends in time for the first of the operations that it executes, some of which have waited for the
 * reply to an earlier statement. So a dead network delays no caller by two whole timeouts.
 */
export function limited(query: Query, repetitions: readonly Repetition[], clock: Clock): Query {
  return (text, values) => {
    const left = Math.min(STATEMENT_TIMEOUT, ...repetitions.map(({ until }) => until - clock.now()))
    const limit = Math.max(left, MIN_TIME)
    return inTime(query(text, values), limit, clock, () => noAnswer(limit, true))
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
