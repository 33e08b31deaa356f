import { SqlError } from './sql-client.js'

/** SQLSTATEs: a prepared statement is missing, or exists already, because a pooler has switched the connection. */
const MISPLACED = ['26000', '42P05']

/** Decides whether to prepare statements. They fail behind a pooler that gives each transaction another connection. */
export class Preparation {
  #isOn = true

  /**
   * Runs the work. If a prepared statement was missing or duplicate, runs it again, and prepares nothing from then on.
   */
  async around<T>(work: (prepares: boolean) => Promise<T>): Promise<T> {
    try {
      return await work(this.#isOn)
    } catch (error) {
      if (!(error instanceof SqlError) || !MISPLACED.includes(error.code!)) throw error
      this.#isOn = false
      return work(false)
    }
  }
}
