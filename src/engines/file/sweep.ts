import type { Connection } from './driver.js'

/**
 * Deletes the rows of a table whose time is over, one stretch of the table after the other. A stretch is looked at each
 * time that half as many rows were written, so each row that is written costs a look at two.
 */
export class Sweep {
  readonly #sql: ReturnType<typeof statements>
  readonly #stretch: number
  // Processes that write few rows and end sweep now and then, too, each at another place.
  #written: number
  #sweptTo: readonly string[] | undefined

  /**
   * @param table a table with the column `until`: wall clock, milliseconds.
   * @param columns its primary key.
   * @param stretch how many rows are looked at together.
   */
  constructor(connection: Connection, table: string, columns: readonly string[], stretch: number) {
    this.#sql = statements(connection, table, columns)
    this.#stretch = stretch
    this.#written = Math.floor((Math.random() * stretch) / 2)
  }

  /** So many rows were written just now, by the wall clock. */
  written(rows: number, now: number): void {
    this.#written += rows
    for (; this.#written >= this.#stretch / 2; this.#written -= this.#stretch / 2) this.#sweep(now)
  }

  #sweep(now: number): void {
    const from = this.#sweptTo ?? (this.#sql.any.get(Math.random()) as string[])
    const end = this.#sql.end.get(...from, this.#stretch) as string[] | undefined
    if (end) this.#sql.sweep.run(...from, ...end, now)
    else this.#sql.sweepRest.run(...from, now)
    this.#sweptTo = end ?? from.map(() => '')
  }
}

function statements(connection: Connection, table: string, columns: readonly string[]) {
  const key = columns.join(', ')
  const values = columns.map(() => '?').join(', ')
  return {
    any: connection.prepare(
      `select ${key} from ${table} limit 1 offset cast(? * (select count(*) from ${table}) as integer)`,
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
