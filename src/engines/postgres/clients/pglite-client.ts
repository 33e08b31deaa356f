import type { Clock } from '../../../base/clock.js'
import { answered } from './answered.js'
import type { Listening, Query, SqlClient } from './sql-client.js'

/** The OID of the type `text`. */
const TEXT = 25

/** The same as `PG_TEXT`, for PGlite. */
export const PGLITE_TEXT = { rowMode: 'array', parsers: { [TEXT]: (text: string) => text } } as const

type Options = typeof PGLITE_TEXT
interface Result {
  readonly rows: readonly (readonly unknown[])[]
}

/** The parts of a PGlite that are used; its types may not be installed. */
export interface PGlite {
  readonly closed: boolean
  query(text: string, values: string[], options: Options): Promise<Result>
  /** Returns the result of each statement. */
  exec(text: string, options: Options): Promise<readonly Result[]>
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

  readonly query: Query = async (text, values) => {
    const { rows } = await this.#answered(this.#pglite.query(text, [...values], PGLITE_TEXT))
    return rows[0]?.[0]
  }

  async run(text: string): Promise<unknown> {
    const results = await this.#answered(this.#pglite.exec(text, PGLITE_TEXT), false)
    return results.at(-1)?.rows[0]?.[0]
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

  #answered<T>(answer: Promise<T>, isSent = !this.#pglite.closed): Promise<T> {
    return answered(answer, this.#clock, isSent)
  }
}
