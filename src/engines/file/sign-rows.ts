import type { Connection } from './driver.js'

/**
 * The time of the last sign of life of each session, for use inside a write transaction. Rows that were read stay in
 * memory until another process writes. The first use creates the table.
 */
export class SignRows {
  readonly #connection: Connection
  #sql: ReturnType<typeof statements> | undefined
  readonly #seen = new Map<string, number>()

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** Returns -Infinity if the session has sent none. */
  seen(session: string): number {
    let seen = this.#seen.get(session)
    if (seen === undefined) {
      seen = (this.#statements().get.get(session)?.[0] as number | undefined) ?? -Infinity
      this.#seen.set(session, seen)
    }
    return seen
  }

  see(session: string, now: number): void {
    this.#seen.set(session, now)
    this.#statements().put.run(session, now)
  }

  leave(session: string): void {
    this.#seen.delete(session)
    this.#statements().remove.run(session)
  }

  /** Drops the rows in memory, because another process may have written. */
  outdated(): void {
    this.#seen.clear()
  }

  /** Drops everything after a rollback, because the transaction may have created the table. */
  forget(): void {
    this.#sql = undefined
    this.#seen.clear()
  }

  #statements(): ReturnType<typeof statements> {
    return (this.#sql ??= statements(this.#connection))
  }
}

function statements(connection: Connection) {
  connection.exec(
    'create table if not exists signs (session text primary key, seen real not null) without rowid',
  )
  return {
    get: connection.prepare('select seen from signs where session = ?'),
    put: connection.prepare(
      'insert into signs values (?, ?) on conflict (session) do update set seen = excluded.seen',
    ),
    remove: connection.prepare('delete from signs where session = ?'),
  }
}
