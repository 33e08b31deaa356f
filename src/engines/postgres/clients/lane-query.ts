import type { Clock } from '../../../base/clock.js'
import { noAnswer } from './answered.js'
import type { Repetition } from './repetition.js'
import { SqlError, type Query } from './sql-client.js'

/** Minimum time limit of a statement, in milliseconds: several round trips over a slow link. */
const MIN_TIME = 2000

/**
 * Runs the statements of one lane, one after the other.
 *
 * After a statement without a reply, the next one may get none either. So it is given up when the time of its first
 * caller ends, and a dead network delays no caller by two whole timeouts. Any reply removes this limit, even a late one
 * to a statement that was given up, because it shows that the server is only slow.
 */
export class LaneQuery {
  readonly #query: Query
  readonly #clock: Clock
  /** Whether no reply has arrived since a statement got none. */
  #isSilent = false

  constructor(query: Query, clock: Clock) {
    this.#query = query
    this.#clock = clock
  }

  /** Returns a query for the next statement of the lane. @param repetitions the repetitions of its operations */
  for(repetitions: readonly Repetition[]): Query {
    return (text, values) =>
      new Promise((resolve, reject) => {
        let isGivenUp = false
        const now = this.#clock.now()
        const limit = Math.max(Math.min(...repetitions.map(({ until }) => until - now)), MIN_TIME)
        const giveUp = (): void => {
          // If a reply has arrived meanwhile, only the client's limit applies.
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
