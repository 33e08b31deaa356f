import type { Clock } from '../../../base/clock.js'
import { answered } from './answered.js'
import { PGLITE_TEXT } from './plain-text.js'
import type { Listening, Query, SqlClient } from './sql-client.js'

interface Statements {
  query(
    text: string,
    values: string[],
    options: typeof PGLITE_TEXT,
  ): Promise<{ readonly rows: readonly unknown[] }>
}

/** The parts of a PGlite that are used; its types may not be installed. */
export interface PGlite extends Statements {
  readonly closed: boolean
  exec(text: string): Promise<unknown>
  transaction<T>(work: (statements: Statements) => Promise<T>): Promise<T>
  listen(channel: string, onMessage: (message: string) => void): Promise<unknown>
  unlisten(channel: string, onMessage: (message: string) => void): Promise<void>
}

/** Runs statements over the caller's PGlite, a PostgreSQL in this process. */
export class PGliteClient implements SqlClient {
  readonly name: string
  readonly isEmbedded = true
  readonly #pglite: PGlite
  readonly #clock: Clock

  constructor(name: string, pglite: PGlite, clock: Clock) {
    this.name = name
    this.#pglite = pglite
    this.#clock = clock
  }

  readonly query: Query = (text, values) => this.#answered(this.#ask(this.#pglite, text, values))

  async run(text: string): Promise<void> {
    await this.#answered(this.#pglite.exec(text))
  }

  transaction<T>(work: (query: Query) => Promise<T>): Promise<T> {
    const done = this.#pglite.transaction(statements =>
      work((text, values) => this.#answered(this.#ask(statements, text, values))),
    )
    return this.#answered(done)
  }

  async listen(channel: string, onMessage: (message: string, channel: string) => void): Promise<Listening> {
    const quoted = `"${channel}"`
    const receive = (message: string): void => onMessage(message, channel)
    await this.#answered(this.#pglite.listen(quoted, receive))
    // The function that `listen` returns to stop listening omits the quotes.
    return {
      query: this.query,
      run: text => this.run(text),
      stop: () => this.#answered(this.#pglite.unlisten(quoted, receive)),
    }
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  async #ask(statements: Statements, text: string, values: readonly string[]): Promise<unknown> {
    const { rows } = await statements.query(text, [...values], PGLITE_TEXT)
    return (rows[0] as readonly unknown[] | undefined)?.[0]
  }

  #answered<T>(answer: Promise<T>): Promise<T> {
    return answered(answer, this.#clock, !this.#pglite.closed)
  }
}
