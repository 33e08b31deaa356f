import type { SessionInfo } from '../../engine/contract.js'
import type { Connection } from './driver.js'

/** The process of a session, with the socket by which the session is reached. */
export interface AddressedMember extends SessionInfo {
  readonly address: string
}

/** The sessions of the boxes that are open, and what they watch. */
export class SessionRows {
  readonly #sql: ReturnType<typeof statements>
  readonly #members = new Map<string, AddressedMember>()

  constructor(connection: Connection) {
    this.#sql = statements(connection)
  }

  /** Another process may have written. */
  forget(): void {
    this.#members.clear()
  }

  all(): string[] {
    return this.#sql.all.all().map(row => row[0] as string)
  }

  get(session: string): AddressedMember | undefined {
    const known = this.#members.get(session)
    if (known) return known
    const row = this.#sql.get.get(session)
    if (!row) return undefined
    const [host, pid, label, address] = row as [string, number, string | null, string]
    const member = { session, host, pid, label: label ?? undefined, address }
    this.#members.set(session, member)
    return member
  }

  join({ session, host, pid, label, address }: AddressedMember): void {
    this.#sql.join.run(session, host, pid, label ?? null, address)
  }

  leave(session: string): void {
    this.#sql.leave.run(session)
    this.#sql.unwatchAll.run(session)
    this.#members.delete(session)
  }

  watch(session: string, key: string): void {
    this.#sql.watch.run(key, session)
  }

  unwatch(session: string, key: string): void {
    this.#sql.unwatch.run(key, session)
  }

  watchers(keys: readonly string[]): { session: string; key: string }[] {
    if (keys.length === 0 || !this.#sql.anyWatch.get()) return []
    return this.#sql.watchers
      .all(JSON.stringify(keys))
      .map(row => ({ key: row[0] as string, session: row[1] as string }))
  }
}

function statements(connection: Connection) {
  return {
    all: connection.prepare('select session from sessions'),
    get: connection.prepare('select host, pid, label, address from sessions where session = ?'),
    join: connection.prepare('insert into sessions values (?, ?, ?, ?, ?)'),
    leave: connection.prepare('delete from sessions where session = ?'),
    watch: connection.prepare('insert or ignore into watches values (?, ?)'),
    unwatch: connection.prepare('delete from watches where key = ? and session = ?'),
    unwatchAll: connection.prepare('delete from watches where session = ?'),
    anyWatch: connection.prepare('select 1 from watches limit 1'),
    watchers: connection.prepare(
      'select key, session from watches where key in (select value from json_each(?))',
    ),
  }
}
