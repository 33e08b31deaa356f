import type { Connection } from './driver.js'

/**
 * Deletes the rows of a table whose time is over, one stretch of the table after the other. A stretch is looked at each
 * time that half as many rows were written, so each row that is written costs a look at two. The database keeps the
 * place of the next stretch, because many processes write few rows and end.
 */
export class Sweep {
  readonly #connection: Connection
  readonly #table: string
  readonly #columns: readonly string[]
  readonly #stretch: number
  #sql: ReturnType<typeof statements> | undefined
  // Some of the processes that write fewer rows than half a stretch sweep, too.
  #written: number

  /**
   * @param table a table with the column `until`: wall clock, milliseconds.
   * @param columns its primary key.
   * @param stretch how many rows are looked at together.
   */
  constructor(connection: Connection, table: string, columns: readonly string[], stretch: number) {
    this.#connection = connection
    this.#table = table
    this.#columns = columns
    this.#stretch = stretch
    this.#written = Math.floor((Math.random() * stretch) / 2)
  }

  /** So many rows were written just now, by the wall clock. */
  written(rows: number, now: number): void {
    this.#written += rows
    for (; this.#written >= this.#stretch / 2; this.#written -= this.#stretch / 2) this.#sweep(now)
  }

  /** After a transaction that was rolled back, perhaps with the table of places that it had made. */
  forget(): void {
    this.#sql = undefined
  }

  #sweep(now: number): void {
    const sql = (this.#sql ??= statements(this.#connection, this.#table, this.#columns))
    const first = this.#columns.map(() => '')
    const place = sql.place.get(this.#table)
    const from = place ? (JSON.parse(place[0] as string) as string[]) : first
    const end = sql.end.get(...from, this.#stretch - 1) as string[] | undefined
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
