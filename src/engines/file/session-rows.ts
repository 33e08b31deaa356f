import type { SessionInfo } from '../../engine/contract.js'
import type { Connection } from './driver.js'

/** A session, with the address of its socket. */
export interface AddressedMember extends SessionInfo {
  readonly address: string
}

/** The sessions of the open boxes, the keys that they watch, and the times of their last signs of life. */
export class SessionRows {
  readonly #sql: ReturnType<typeof statements>
  /** The times of signs that were read or written since another process wrote. */
  readonly #seen = new Map<string, number>()

  constructor(connection: Connection) {
    this.#sql = statements(connection)
  }

  /** The socket addresses of all sessions. */
  addresses(): string[] {
    return this.#sql.addresses.all().map(row => row[0] as string)
  }

  /** Returns the next address in order; after the last one, the first. Undefined if there is no other. */
  addressAfter(address: string): string | undefined {
    const found = this.#sql.after.get(address)?.[0] ?? this.#sql.first.get(address)?.[0]
    return (found as string | null | undefined) ?? undefined
  }

  get(session: string): AddressedMember | undefined {
    const row = this.#sql.get.get(session)
    if (!row) return undefined
    const [host, pid, label, address] = row as [string, number, string | null, string]
    return { session, host, pid, label: label ?? undefined, address }
  }

  /** The sessions of the thread that listens on this socket. */
  at(address: string): string[] {
    return this.#sql.at.all(address).map(row => row[0] as string)
  }

  join({ session, host, pid, label, address }: AddressedMember): void {
    this.#sql.join.run(session, host, pid, label ?? null, address)
  }

  leave(session: string): void {
    this.#sql.leave.run(session)
    this.#sql.unwatchAll.run(session)
    this.#sql.unsee.run(session)
    this.#seen.delete(session)
  }

  /** Returns -Infinity if the session has sent no sign of life. */
  seen(session: string): number {
    let seen = this.#seen.get(session)
    if (seen === undefined) {
      seen = (this.#sql.seen.get(session)?.[0] as number | undefined) ?? -Infinity
      this.#seen.set(session, seen)
    }
    return seen
  }

  see(session: string, now: number): void {
    this.#seen.set(session, now)
    this.#sql.see.run(session, now)
  }

  /** Drops the rows in memory, because another process may have written, or after a rollback. */
  outdated(): void {
    this.#seen.clear()
  }

  watch(session: string, key: string): void {
    this.#sql.watch.run(key, session)
  }

  unwatch(session: string, key: string): void {
    this.#sql.unwatch.run(key, session)
  }

  watchers(keys: readonly string[]): { session: string; key: string }[] {
    if (keys.length === 0) return []
    return this.#sql.watchers
      .all(JSON.stringify(keys))
      .map(row => ({ key: row[0] as string, session: row[1] as string }))
  }
}

function statements(connection: Connection) {
  return {
    addresses: connection.prepare('select distinct address from sessions'),
    after: connection.prepare('select min(address) from sessions where address > ?'),
    first: connection.prepare('select min(address) from sessions where address < ?'),
    at: connection.prepare('select session from sessions where address = ?'),
    get: connection.prepare('select host, pid, label, address from sessions where session = ?'),
    join: connection.prepare('insert into sessions values (?, ?, ?, ?, ?)'),
    leave: connection.prepare('delete from sessions where session = ?'),
    seen: connection.prepare('select seen from signs where session = ?'),
    see: connection.prepare(
      'insert into signs values (?, ?) on conflict (session) do update set seen = excluded.seen',
    ),
    unsee: connection.prepare('delete from signs where session = ?'),
    watch: connection.prepare('insert or ignore into watches values (?, ?)'),
    unwatch: connection.prepare('delete from watches where key = ? and session = ?'),
    unwatchAll: connection.prepare('delete from watches where session = ?'),
    watchers: connection.prepare(
      'select key, session from watches where key in (select value from json_each(?))',
    ),
  }
}
