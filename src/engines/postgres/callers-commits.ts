import type { Clock, Timer } from '../../base/clock.js'
import { arrayText, SqlError, type Query } from './clients/sql-client.js'
import type { Notice } from './outcomes.js'
import type { Statements } from './statements.js'

/** The first and the longest pause between two checks, in milliseconds. */
const MIN_PAUSE = 20
const MAX_PAUSE = 1000

/**
 * Sends the notices of commits in callers' transactions after these have committed. They are not sent in these
 * transactions, because the server can't prepare a transaction that notifies, and rejects its commit if the queue of
 * notifications is full. One statement checks which of them have ended, soon at first, and then at least once a second.
 */
export class CallersCommits {
  readonly #query: Query
  readonly #statements: Statements
  readonly #clock: Clock
  readonly #notify: (notices: readonly Notice[]) => unknown
  /** The notices of transactions that have not ended, by the number of the transaction on the server. */
  readonly #open = new Map<string, readonly Notice[]>()
  #pause = MIN_PAUSE
  #next: Timer | undefined
  #isClosed = false

  constructor(
    query: Query,
    statements: Statements,
    clock: Clock,
    notify: (notices: readonly Notice[]) => unknown,
  ) {
    this.#query = query
    this.#statements = statements
    this.#clock = clock
    this.#notify = notify
  }

  /** Adds the notices of a commit in a transaction that is open. */
  async add(notices: readonly Notice[], transaction: Query): Promise<void> {
    if (notices.length === 0) return
    const number = String(await transaction(this.#statements.transactionNumber, []))
    this.#open.set(number, [...(this.#open.get(number) ?? []), ...notices])
    this.#pause = MIN_PAUSE
    this.#lookLater()
  }

  /** Stops checking. Watchers find the changes of transactions that are still open by themselves. */
  close(): void {
    this.#isClosed = true
    this.#next?.cancel()
  }

  #lookLater(): void {
    this.#next?.cancel()
    if (this.#isClosed || this.#open.size === 0) return
    this.#next = this.#clock.after(this.#pause, () => void this.#look(), false)
    this.#pause = Math.min(2 * this.#pause, MAX_PAUSE)
  }

  async #look(): Promise<void> {
    try {
      const text = await this.#query(this.#statements.endedTransactions, [arrayText([...this.#open.keys()])])
      for (const [number, isCommitted] of JSON.parse(text as string) as readonly [string, boolean][]) {
        const notices = this.#open.get(number)
        this.#open.delete(number)
        if (isCommitted && notices) void this.#notify(notices)
      }
    } catch (error) {
      // A server that was promoted may not know one of the transactions. Then watchers find the changes by themselves.
      if (error instanceof SqlError && error.code !== undefined && !error.isUnclear) this.#open.clear()
    }
    this.#lookLater()
  }
}
