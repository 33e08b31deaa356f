import { withInfinity } from '../../engine/kit/memory-state.js'
import type { LimiterState } from '../../engine/limits/reserve-permits.js'
import type { Connection } from './driver.js'
import { readable } from './readable.js'
import { Sweep } from './sweep.js'

/** Number of rows that a sweep checks together. */
const CHUNK = 128

/**
 * The state of limiters, for use inside a write transaction. The first process that uses a limiter creates the table,
 * so a folder without limiters has none. The rows survive a reboot of the machine. Its clock then starts from zero, so
 * permits granted before look newer than they are, never older.
 */
export class LimitRows {
  readonly #connection: Connection
  #sql: ReturnType<typeof statements> | undefined

  constructor(connection: Connection) {
    this.#connection = connection
  }

  get(name: string): LimiterState | undefined {
    const row = this.#statements().get.get(name)
    if (!row) return undefined
    return readable('limits', 'name', name, () => JSON.parse(row[0] as string, withInfinity) as LimiterState)
  }

  names(): string[] {
    return this.#statements()
      .names.all()
      .map(row => row[0] as string)
  }

  /** @param forgottenIn time until the state can be deleted, in milliseconds of the wall clock. */
  put(name: string, state: LimiterState, forgottenIn: number): void {
    const sql = this.#statements()
    const now = Date.now()
    sql.put.run(name, JSON.stringify(state), Math.ceil(now + forgottenIn))
    sql.sweep.written(1, now)
  }

  /** Drops the statements after a rollback, because the transaction may have created the table. */
  forget(): void {
    this.#sql = undefined
  }

  #statements(): ReturnType<typeof statements> {
    return (this.#sql ??= statements(this.#connection))
  }
}

function statements(connection: Connection) {
  connection.exec(
    `create table if not exists limits
     (name text primary key, state text not null, until integer not null) without rowid`,
  )
  return {
    get: connection.prepare('select state from limits where name = ?'),
    names: connection.prepare('select name from limits'),
    put: connection.prepare(
      `insert into limits values (?, ?, ?)
       on conflict (name) do update set state = excluded.state, until = excluded.until`,
    ),
    sweep: new Sweep(connection, 'limits', ['name'], CHUNK),
  }
}
