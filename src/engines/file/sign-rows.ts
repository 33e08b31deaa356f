import type { Connection } from './driver.js'

/**
 * When the last sign of life of each session came, for use inside a write transaction. All are read together, and kept in
 * memory until another process has written. The first sign makes the table.
 */
export class SignRows {
  readonly #connection: Connection
  #sql: ReturnType<typeof statements> | undefined
  #seen: Map<string, number> | undefined

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** -Infinity if none has come. */
  seen(session: string): number {
    return this.#all().get(session) ?? -Infinity
  }

  see(session: string, now: number): void {
    this.#all().set(session, now)
    this.#statements().put.run(session, now)
  }

  leave(session: string): void {
    this.#seen?.delete(session)
    this.#statements().remove.run(session)
  }

  /** Another process may have written. */
  outdated(): void {
    this.#seen = undefined
  }

  /** After a transaction that was rolled back, perhaps with the table that it had made. */
  forget(): void {
    this.#sql = undefined
    this.#seen = undefined
  }

  #all(): Map<string, number> {
    return (this.#seen ??= new Map(
      this.#statements()
        .all.all()
        .map(([session, seen]) => [session as string, seen as number]),
    ))
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
    all: connection.prepare('select session, seen from signs'),
    put: connection.prepare(
      'insert into signs values (?, ?) on conflict (session) do update set seen = excluded.seen',
    ),
    remove: connection.prepare('delete from signs where session = ?'),
  }
}
