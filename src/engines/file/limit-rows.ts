import type { LimiterState } from '../../limits/rules/reserve.js'
import type { Connection } from './driver.js'

/** So many rows are looked at for each so many changes, to find those that can be forgotten. */
const LOOKED_AT = 128
const CHANGES = 64

/**
 * The state of limiters in a table of their own, for use inside a write transaction. The table is made by whoever first
 * needs it, so that a folder without limiters is as it always was. What is kept survives a restart of the machine: its
 * clock then begins anew, which makes what was given before look younger than it is, never older.
 */
export class LimitRows {
  readonly #connection: Connection
  #sql: ReturnType<typeof statements> | undefined
  // Processes that change little and end sweep now and then, too, each at another place.
  #changes = Math.floor(Math.random() * CHANGES)
  #sweptTo: string | undefined

  constructor(connection: Connection) {
    this.#connection = connection
  }

  get(name: string): LimiterState | undefined {
    const row = this.#statements().get.get(name)
    return row && (JSON.parse(row[0] as string, revived) as LimiterState)
  }

  /** @param until when it is as good as nothing: the wall clock, which outlives a restart. */
  put(name: string, state: LimiterState, until: number, wall: number): void {
    const sql = this.#statements()
    sql.put.run(name, JSON.stringify(state), Math.ceil(until))
    if (++this.#changes < CHANGES) return
    this.#changes = 0
    const from = this.#sweptTo ?? (sql.any.get(Math.random())![0] as string)
    const end = sql.endOfSweep.get(from, LOOKED_AT)?.[0] as string | undefined
    if (end === undefined) sql.sweepRest.run(from, wall)
    else sql.sweep.run(from, end, wall)
    this.#sweptTo = end ?? ''
  }

  /** After a transaction that was rolled back, perhaps with the table that it had made. */
  forget(): void {
    this.#sql = undefined
  }

  #statements(): ReturnType<typeof statements> {
    if (!this.#sql) {
      this.#connection.exec(
        'create table if not exists limits (name text primary key, state text not null, until integer not null) without rowid',
      )
      this.#sql = statements(this.#connection)
    }
    return this.#sql
  }
}

function statements(connection: Connection) {
  return {
    get: connection.prepare('select state from limits where name = ?'),
    put: connection.prepare(
      'insert into limits values (?, ?, ?) on conflict (name) do update set state = excluded.state, until = excluded.until',
    ),
    any: connection.prepare(
      'select name from limits limit 1 offset cast(? * (select count(*) from limits) as integer)',
    ),
    endOfSweep: connection.prepare('select name from limits where name > ? order by name limit 1 offset ?'),
    sweep: connection.prepare('delete from limits where name > ? and name <= ? and until <= ?'),
    sweepRest: connection.prepare('delete from limits where name > ? and until <= ?'),
  }
}

/** JSON has no word for it: the only number here that is not finite is the time before all others. */
function revived(_: string, value: unknown): unknown {
  return value === null ? -Infinity : value
}
