import type { Connection } from './driver.js'

/**
 * Deletes the expired rows of a table, one chunk after another. After each half a chunk of written rows, it checks the
 * next chunk, so each written row costs the check of two. The database stores where the next chunk begins, because many
 * processes write only a few rows before they end.
 */
export class Sweep {
  readonly #connection: Connection
  readonly #table: string
  readonly #columns: readonly string[]
  readonly #chunk: number
  #sql: ReturnType<typeof statements> | undefined
  // Starts at random, so that some of the processes that write less than half a chunk sweep, too.
  #written: number

  /**
   * @param table a table with the column `until`: wall clock, in milliseconds.
   * @param columns its primary key.
   * @param chunk number of rows that are checked together.
   */
  constructor(connection: Connection, table: string, columns: readonly string[], chunk: number) {
    this.#connection = connection
    this.#table = table
    this.#columns = columns
    this.#chunk = chunk
    this.#written = Math.floor((Math.random() * chunk) / 2)
  }

  /** Counts written rows, and sweeps if they are enough. @param now wall clock, in milliseconds. */
  written(rows: number, now: number): void {
    this.#written += rows
    for (; this.#written >= this.#chunk / 2; this.#written -= this.#chunk / 2) this.#sweep(now)
  }

  /** Drops the statements after a rollback, because the transaction may have created the table of places. */
  forget(): void {
    this.#sql = undefined
  }

  #sweep(now: number): void {
    const sql = (this.#sql ??= statements(this.#connection, this.#table, this.#columns))
    const first = this.#columns.map(() => '')
    const place = sql.place.get(this.#table)
    const from = place ? (JSON.parse(place[0] as string) as string[]) : first
    const end = sql.end.get(...from, this.#chunk - 1) as string[] | undefined
    if (end) sql.sweep.run(...from, ...end, now)
    else sql.sweepRest.run(...from, now)
    sql.putPlace.run(this.#table, JSON.stringify(end ?? first))
  }
}

function statements(connection: Connection, table: string, columns: readonly string[]) {
  connection.exec(
    'create table if not exists sweeps (swept text primary key, place text not null) without rowid',
  )
  const key = columns.join(', ')
  const values = columns.map(() => '?').join(', ')
  return {
    place: connection.prepare('select place from sweeps where swept = ?'),
    putPlace: connection.prepare(
      'insert into sweeps values (?, ?) on conflict (swept) do update set place = excluded.place',
    ),
    end: connection.prepare(
      `select ${key} from ${table} where (${key}) > (${values}) order by ${key} limit 1 offset ?`,
    ),
    sweep: connection.prepare(
      `delete from ${table} where (${key}) > (${values}) and (${key}) <= (${values}) and until <= ?`,
    ),
    sweepRest: connection.prepare(`delete from ${table} where (${key}) > (${values}) and until <= ?`),
  }
}
