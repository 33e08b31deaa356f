import type { Clock } from '../../../base/clock.js'
import { noAnswer } from './answered.js'
import type { Repetition } from './repetition.js'
import { SqlError, type Query } from './sql-client.js'

/** A statement has at least this time, in milliseconds: several round trips over a slow link. */
const MIN_TIME = 2000

/**
 * Runs the statements of one lane, of which each follows the end of the one before.
 *
 * After a statement without a reply, the next one may have none either. So it ends in time for the caller that has waited
 * the longest, and a dead network delays no caller for the time of two statements. Any reply ends that, also one to a
 * statement that was given up: the server is only slow, and gets the whole time again.
 */
export class LaneQuery {
  readonly #query: Query
  readonly #clock: Clock
  /** Whether nothing has been heard since a statement without a reply. */
  #isSilent = false

  constructor(query: Query, clock: Clock) {
    this.#query = query
    this.#clock = clock
  }

  /** Returns a query for the next statement of the lane. @param repetitions those of its operations */
  for(repetitions: readonly Repetition[]): Query {
    return (text, values) =>
      new Promise((resolve, reject) => {
        let isGivenUp = false
        const now = this.#clock.now()
        const limit = Math.max(Math.min(...repetitions.map(({ until }) => until - now)), MIN_TIME)
        const giveUp = (): void => {
          // If the server has been heard meanwhile, only the client's limit applies.
          if (!this.#isSilent) return
          isGivenUp = true
          reject(noAnswer(limit, true))
        }
        const isLimited = this.#isSilent && repetitions.length > 0
        const timer = isLimited ? this.#clock.after(limit, giveUp, true) : undefined
        this.#query(text, values).then(
          result => {
            timer?.cancel()
            this.#isSilent = false
            resolve(result)
          },
          (error: unknown) => {
            timer?.cancel()
            const isReply = error instanceof SqlError && error.code !== undefined
            // A later statement may have been answered since this one was given up.
            if (isReply || !isGivenUp) this.#isSilent = !isReply
            reject(error)
          },
        )
      })
  }
}
