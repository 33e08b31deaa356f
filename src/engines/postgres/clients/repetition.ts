import type { Clock } from '../../../clock.js'
import { answered, STATEMENT_TIMEOUT } from './answered.js'
import { SqlError, type Query } from './sql-client.js'

/** Maximum number of times that a statement is sent again. A pool can have many connections that have ended. */
const MAX_LOSSES = 16
/** A statement has at least this time, in milliseconds: several round trips over a slow link. */
const MIN_TIME = 2000

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
    if (error.isUnclear) this.lost ??= error
    return ++this.#losses <= MAX_LOSSES && this.#clock.now() < this.#until
  }
}

/**
 * Returns a query for the next statement after one without a reply. It may have no reply either, so it ends in time for
 * the caller that has waited the longest.
 */
export function inTimeFor(query: Query, repetitions: readonly Repetition[], clock: Clock): Query {
  const left = Math.min(...repetitions.map(({ until }) => until)) - clock.now()
  const limit = Math.max(left, MIN_TIME)
  return (text, values) => answered(query(text, values), clock, true, undefined, 'answer', limit)
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
