import type { Clock } from '../../../base/clock.js'
import { STATEMENT_TIMEOUT } from './answered.js'
import { SqlError, type Query } from './sql-client.js'

/** Maximum number of times that a statement is sent again. A pool can have many connections that have ended. */
const MAX_LOSSES = 16

/** Decides how often a statement that may be executed twice is sent again, because it was lost with its connection. */
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

  /** Until when it is sent again: clock time. */
  get until(): number {
    return this.#until
  }

  /** Whether to send it again after this error. */
  follows(error: unknown): boolean {
    if (!(error instanceof SqlError && error.isLost)) return false
    // mutant: unclear-loss-forgotten
    if (error.isUnclear) this.lost ??= error
    return ++this.#losses <= MAX_LOSSES && this.#clock.now() < this.#until
  }
}

/** Runs statements that may be executed twice, again if they were lost. */
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
