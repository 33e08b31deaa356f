import type { Clock } from '../../../base/clock.js'
import { answered, STATEMENT_TIMEOUT } from './answered.js'
import { Preparation } from './preparation.js'
import {
  endsConnection,
  isReadOnly,
  sqlError,
  type Listening,
  type Query,
  type SqlClient,
} from './sql-client.js'

type Rows = PromiseLike<readonly (readonly (Uint8Array | null)[])[]>

/** Runs statements: a `sql`, or the `sql` of a transaction. */
interface Statements {
  /** `raw` returns columns as bytes, regardless of the caller's options. */
  unsafe(text: string, values?: string[], options?: { prepare: boolean }): Rows & { raw(): Rows }
}

/** The parts of a `sql` of the package `postgres` that are used; its types may not be installed. */
export interface PostgresSql extends Statements {
  begin(work: (sql: Statements) => Promise<unknown>): Promise<unknown>
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
    this.#preparation.around(() => {
      const sql = this.#sql
      return this.#answered(sql, this.#ask(sql, text, values, this.#preparation.isOn))
    })

  async run(text: string): Promise<void> {
    await this.#answered(this.#sql, this.#sql.unsafe(text))
  }

  async transaction<T>(work: (query: Query) => Promise<T>): Promise<T> {
    let begun!: (sql: Statements) => void
    const beginning = new Promise<Statements>(resolve => (begun = resolve))
    let finish!: (result: Promise<unknown>) => void
    const finished = new Promise<unknown>(resolve => (finish = resolve))
    const all = this.#sql
    const done = all.begin(sql => {
      begun(sql)
      return finished
    })
    for (const promise of [done, finished]) promise.catch(() => undefined)
    let last: Promise<unknown> = Promise.resolve()
    try {
      const sql = await this.#answered(all, Promise.race([beginning, done as Promise<never>]), false)
      // The statements are not prepared, because an error of a pooler would end the transaction. A statement that fails
      // before the commit has certainly had no effect.
      const result = await work((text, values) => {
        last = this.#ask(sql, text, values, false)
        return this.#answered(all, last, false)
      })
      // The package commits with a prepared statement. Behind a pooler, that can silently become a rollback.
      last = Promise.resolve(sql.unsafe('commit and chain'))
      await this.#answered(all, last)
      finish(Promise.resolve())
      return result
    } catch (error) {
      finish(this.#toRollBack(last, error))
      if (!endsConnection(error)) await answered(done, this.#clock).catch(() => undefined)
      throw error
    }
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
      await answered(sql.unsafe(`listen "${channel}"`), this.#clock)
      isListening = true
    } catch (error) {
      stop().catch(() => undefined)
      throw error
    }
    return {
      query: (text, values) => this.#ask(sql, text, values, false),
      run: async text => {
        await sql.unsafe(text)
      },
      stop,
    }
  }

  async close(): Promise<void> {
    await this.#sql.end({ timeout: 0 })
  }

  /**
   * Rejects once the last statement has its reply. Then the package rolls back. A rollback over a lost connection would
   * end the process, so in that case the promise stays pending.
   */
  async #toRollBack(last: Promise<unknown>, error: unknown): Promise<void> {
    await last.catch((failure: unknown) => {
      if (endsConnection(sqlError(failure, false))) return new Promise(() => undefined)
      return undefined
    })
    throw error
  }

  async #ask(sql: Statements, text: string, values: readonly string[], prepare: boolean): Promise<unknown> {
    const rows = await sql.unsafe(text, [...values], { prepare }).raw()
    const value = rows[0]?.[0]
    return value && Buffer.from(value).toString()
  }

  async #answered<T>(sql: PostgresSql, answer: PromiseLike<T>, isSent = true): Promise<T> {
    try {
      return await answered(answer, this.#clock, isSent, () => this.#replace(sql))
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
