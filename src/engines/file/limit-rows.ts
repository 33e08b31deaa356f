import { withInfinity } from '../../engine/kit/memory-state.js'
import type { LimiterState } from '../../engine/limits/reserve-permits.js'
import type { Connection } from './driver.js'
import { readable } from './readable.js'
import { Sweep } from './sweep.js'

/** Number of rows that a sweep checks together. */
const CHUNK = 128

/** The state of limiters, for use inside a write transaction. */
export class LimitRows {
  readonly #sql: ReturnType<typeof statements>
  readonly #sweep: Sweep

  constructor(connection: Connection) {
    this.#sql = statements(connection)
    this.#sweep = new Sweep(connection, 'limits', ['name'], CHUNK)
  }

  get(name: string): LimiterState | undefined {
    const row = this.#sql.get.get(name)
    if (!row) return undefined
    return readable('limits', 'name', name, () => JSON.parse(row[0] as string, withInfinity) as LimiterState)
  }

  names(): string[] {
    return this.#sql.names.all().map(row => row[0] as string)
  }

  /** @param forgottenIn time until the state can be deleted, in milliseconds of the wall clock. */
  put(name: string, state: LimiterState, forgottenIn: number): void {
    const now = Date.now()
    this.#sql.put.run(name, JSON.stringify(state), Math.ceil(now + forgottenIn))
    this.#sweep.written(1, now)
  }
}

function statements(connection: Connection) {
  return {
    get: connection.prepare('select state from limits where name = ?'),
    names: connection.prepare('select name from limits'),
    put: connection.prepare(
      `insert into limits values (?, ?, ?)
       on conflict (name) do update set state = excluded.state, until = excluded.until`,
    ),
  }
}
