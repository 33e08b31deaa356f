import type { SessionInfo } from '../../engine/contract.js'
import type { Connection } from './driver.js'

/** The process of a session, with the socket by which the session is reached. */
export interface AddressedMember extends SessionInfo {
  readonly address: string
}

/** The sessions of the boxes that are open, and what they watch. */
export class SessionRows {
  readonly #sql: ReturnType<typeof statements>

  constructor(connection: Connection) {
    this.#sql = statements(connection)
  }

  /** Their addresses by session. */
  all(): Map<string, string> {
    return new Map(this.#sql.all.all().map(row => [row[0] as string, row[1] as string]))
  }

  /** The next session in their order, with its address; after the last one comes the first. Undefined if it is alone. */
  after(session: string): [session: string, address: string] | undefined {
    const row = this.#sql.after.get(session) ?? this.#sql.before.get(session)
    return row && [row[0] as string, row[1] as string]
  }

  get(session: string): AddressedMember | undefined {
    const row = this.#sql.get.get(session)
    if (!row) return undefined
    const [host, pid, label, address] = row as [string, number, string | null, string]
    return { session, host, pid, label: label ?? undefined, address }
  }

  /** The sessions that are reached by a socket. */
  at(address: string): string[] {
    return this.#sql.at.all(address).map(row => row[0] as string)
  }

  join({ session, host, pid, label, address }: AddressedMember): void {
    this.#sql.join.run(session, host, pid, label ?? null, address)
  }

  leave(session: string): void {
    this.#sql.leave.run(session)
    this.#sql.unwatchAll.run(session)
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
    all: connection.prepare('select session, address from sessions'),
    after: connection.prepare(
      'select session, address from sessions where session > ? order by session limit 1',
    ),
    before: connection.prepare(
      'select session, address from sessions where session < ? order by session limit 1',
    ),
    at: connection.prepare('select session from sessions where address = ?'),
    get: connection.prepare('select host, pid, label, address from sessions where session = ?'),
    join: connection.prepare('insert into sessions values (?, ?, ?, ?, ?)'),
    leave: connection.prepare('delete from sessions where session = ?'),
    watch: connection.prepare('insert or ignore into watches values (?, ?)'),
    unwatch: connection.prepare('delete from watches where key = ? and session = ?'),
    unwatchAll: connection.prepare('delete from watches where session = ?'),
    watchers: connection.prepare(
      'select key, session from watches where key in (select value from json_each(?))',
    ),
  }
}
