import type { Clock } from '../../../base/clock.js'
import { answered, STATEMENT_TIMEOUT } from './answered.js'
import { Preparation } from './preparation.js'
import { isReadOnly, type Listening, type Query, type SqlClient } from './sql-client.js'

type Rows = readonly (readonly (Uint8Array | null)[])[]

/** The parts of a `sql` of the package `postgres` that are used; its types may not be installed. */
export interface PostgresSql {
  /** `raw` returns columns as bytes, regardless of the caller's options. */
  unsafe(text: string, values?: string[], options?: { prepare: boolean }): { raw(): PromiseLike<Rows> }
  end(options: { timeout: number }): Promise<void>
}

/** Runs statements over the package `postgres`. */
export class PostgresClient implements SqlClient {
  readonly name: string
  readonly #clock: Clock
  readonly #make: (settings?: object) => PostgresSql
  readonly #preparation = new Preparation()
  #sql: PostgresSql

  /** @param make creates a `sql` for the box, with further settings of the package. */
  constructor(name: string, make: (settings?: object) => PostgresSql, clock: Clock) {
    this.name = name
    this.#clock = clock
    this.#make = make
    this.#sql = make()
  }

  readonly query: Query = (text, values) =>
    this.#preparation.around(prepare => this.#answered(sql => this.#ask(sql, text, values, prepare)))

  async run(text: string): Promise<unknown> {
    const results = await this.#answered(sql => sql.unsafe(text).raw(), false)
    // Of several statements, it is a list of their rows.
    return firstOf((results.at(-1) ?? []) as unknown as Rows)
  }

  async listen(
    channel: string,
    onMessage: (message: string, channel: string) => void,
    onLost: () => void,
  ): Promise<Listening> {
    let isListening = false
    let isOver = false
    const stop = async (): Promise<void> => {
      if (isOver) return
      isOver = true
      await sql.end({ timeout: 0 })
    }
    // The function `listen` of the package hides its connection.
    const sql = this.#make({
      max: 1,
      idle_timeout: null,
      onnotify: (to: string, message: string) => {
        if (!isOver) onMessage(message, to)
      },
      onclose: () => {
        // Before the box listens, the statement reports the loss. The package would reconnect without listening.
        if (!isListening || isOver) return
        stop().catch(() => undefined)
        onLost()
      },
    })
    try {
      await answered(sql.unsafe(`listen "${channel}"`).raw(), this.#clock)
      isListening = true
    } catch (error) {
      stop().catch(() => undefined)
      throw error
    }
    return {
      query: (text, values) => this.#ask(sql, text, values, false),
      run: text => Promise.resolve(sql.unsafe(text).raw()),
      stop,
    }
  }

  async close(): Promise<void> {
    await this.#sql.end({ timeout: 0 })
  }

  async #ask(sql: PostgresSql, text: string, values: readonly string[], prepare: boolean): Promise<unknown> {
    return firstOf(await sql.unsafe(text, [...values], { prepare }).raw())
  }

  async #answered<T>(ask: (sql: PostgresSql) => PromiseLike<T>, isSent = true): Promise<T> {
    const sql = this.#sql
    try {
      return await answered(ask(sql), this.#clock, isSent, () => this.#replace(sql))
    } catch (error) {
      // The other connections lead to the same server.
      if (isReadOnly(error)) this.#replace(sql)
      throw error
    }
  }

  /** Replaces all connections. Running statements, perhaps of other boxes, still get their replies. */
  #replace(sql: PostgresSql): void {
    if (this.#sql !== sql) return
    this.#sql = this.#make()
    sql.end({ timeout: STATEMENT_TIMEOUT / 1000 }).catch(() => undefined)
  }
}

/** Returns the first column of the first row as text. */
export function firstOf([row]: Rows): string | null | undefined {
  const value = row?.[0]
  return value && Buffer.from(value).toString()
}
