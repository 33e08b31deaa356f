import { SqlError } from './sql-client.js'

/** A prepared statement is not there, or is there already: a pooler has given the box another connection. */
const MISPLACED = ['26000', '42P05']

/** Whether statements are prepared: not behind a pooler that gives each transaction another connection. */
export class Preparation {
  #isOn = true

  get isOn(): boolean {
    return this.#isOn
  }

  /** Does the work again, and prepares nothing from then on, if a prepared statement was not where it should be. */
  async around<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof SqlError) || !MISPLACED.includes(error.code!)) throw error
      this.#isOn = false
      return work()
    }
  }
}
