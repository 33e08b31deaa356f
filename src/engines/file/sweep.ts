import type { Connection } from './driver.js'

/**
 * Deletes the expired rows of a table, one chunk after another. After each half a chunk of written rows, it checks the
 * next chunk, so each written row costs the check of two. The database stores where the next chunk begins, because many
 * processes write only a few rows before they end.
 */
export class Sweep {
  readonly #sql: ReturnType<typeof statements>
  readonly #table: string
  readonly #first: readonly string[]
  readonly #chunk: number
  // Starts at random, so that some of the processes that write less than half a chunk sweep, too.
  #written: number

  /**
   * @param table a table with the column `until`: wall clock, in milliseconds.
   * @param columns its primary key.
   * @param chunk number of rows that are checked together.
   */
  constructor(connection: Connection, table: string, columns: readonly string[], chunk: number) {
    this.#sql = statements(connection, table, columns)
    this.#table = table
    this.#first = columns.map(() => '')
    this.#chunk = chunk
    this.#written = Math.floor((Math.random() * chunk) / 2)
  }

  /** Counts written rows, and sweeps if they are enough. @param now wall clock, in milliseconds. */
  written(rows: number, now: number): void {
    this.#written += rows
    for (; this.#written >= this.#chunk / 2; this.#written -= this.#chunk / 2) this.#sweep(now)
  }

  #sweep(now: number): void {
    const place = this.#sql.place.get(this.#table)
    const from = place ? (JSON.parse(place[0] as string) as string[]) : this.#first
    const end = this.#sql.end.get(...from, this.#chunk - 1) as string[] | undefined
    if (end) this.#sql.sweep.run(...from, ...end, now)
    else this.#sql.sweepRest.run(...from, now)
    this.#sql.putPlace.run(this.#table, JSON.stringify(end ?? this.#first))
  }
}

function statements(connection: Connection, table: string, columns: readonly string[]) {
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
