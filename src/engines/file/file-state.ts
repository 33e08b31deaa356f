import type { List, LockRequest, RecordedId, Versioned } from '../../engine/contract.js'
import type { EngineState, Purpose } from '../../engine/kit/state-engine.js'
import type { Request } from '../../engine/table-state.js'
import type { LimiterState } from '../../engine/limits/reserve-permits.js'
import { Counter } from './counter.js'
import type { Connection, Statement } from './driver.js'
import { LimitRows } from './limit-rows.js'
import { NarrowRequests } from './narrow-requests.js'
import type { TicketedEntry, TicketedRequest } from './queue-text.js'
import { SessionRows, type AddressedMember } from './session-rows.js'
import { ValueRows } from './value-rows.js'
import { WideRequests } from './wide-requests.js'

/** Ticket of a request that was put before all others. It holds its keys alone. */
const FRONT = 0

/** The state in the database. Rows that were read stay in memory until another process writes. */
export class FileState implements EngineState {
  readonly #dataVersion: Statement
  readonly #counter: Counter
  /** The requests for one key, and those for several. `schema.ts` explains why they are stored differently. */
  readonly #narrow: NarrowRequests
  readonly #wide: WideRequests
  readonly sessions: SessionRows
  readonly #values: ValueRows
  readonly #limits: LimitRows
  /** SQLite's `data_version` at the last read. It changes when another connection writes. */
  #readAt: unknown
  /** The requests of the operation, by ID. Their claims show where to look up a request. */
  #about: ReadonlyMap<string, LockRequest> = new Map()

  /** @param rowSize number of requests in the row of a key. Tests use a smaller one. */
  constructor(connection: Connection, rowSize?: number) {
    this.#dataVersion = connection.prepare('pragma data_version')
    this.#counter = new Counter(connection)
    this.#narrow = new NarrowRequests(connection, rowSize)
    this.#wide = new WideRequests(connection)
    this.sessions = new SessionRows(connection)
    this.#values = new ValueRows(connection)
    this.#limits = new LimitRows(connection)
  }

  /** Runs the work of one operation inside a transaction, and writes its changes. */
  change<T>(work: (state: FileState) => T, purpose: Purpose): T {
    const dataVersion = this.#dataVersion.get()![0]
    if (dataVersion !== this.#readAt) this.#outdated()
    this.#readAt = dataVersion
    this.#about = new Map(requestsIn(purpose).map(request => [request.id, request]))
    const result = work(this)
    this.#narrow.flush()
    this.#values.flush()
    this.#counter.flush()
    return result
  }

  /** Drops everything in memory after a rollback. */
  forget(): void {
    this.#outdated()
    this.#narrow.forget()
    this.#wide.forget()
    this.#values.forget()
  }

  queue(key: string): Iterable<TicketedEntry> | undefined {
    const narrow = this.#narrow.queue(key)
    const wide = this.#wide.queue(key)
    return narrow && wide ? { [Symbol.iterator]: () => merged(narrow, wide) } : (narrow ?? wide)
  }

  lastAhead(request: Request, key: string, count: number): Request[] {
    const { ticket } = request as TicketedRequest
    const wide = (this.#wide.queue(key) ?? []).filter(entry => entry.request.ticket < ticket)
    return [...this.#narrow.lastBefore(ticket, key, count), ...wide]
      .map(entry => entry.request)
      .sort((a, b) => b.ticket - a.ticket)
      .slice(0, count)
  }

  request(id: string): Request | undefined {
    const claims = this.#about.get(id)?.claims
    return claims?.length === 1 ? this.#narrow.get(claims[0]!.key, id) : this.#wide.get(id)
  }

  append(request: Request): void {
    this.#requestsLike(request).append(request, this.#counter.next())
  }

  prepend(request: Request): void {
    if (request.claims.length === 1) this.#narrow.prepend(request, FRONT)
    else this.#wide.append(request, FRONT)
  }

  remove(request: Request): void {
    this.#requestsLike(request).remove(request)
  }

  changed(request: Request): void {
    this.#requestsLike(request).changed(request)
  }

  nextNumber(): number {
    return this.#counter.next()
  }

  requestsOf(session: string): Request[] {
    const found = new Set([...this.#narrow.near(session), ...this.#wide.all()])
    return [...found].filter(request => request.session === session)
  }

  keys(prefix: string): string[] {
    const wide = [...this.#wide.keys()].filter(key => key.startsWith(prefix))
    return [...new Set([...this.#narrow.keys(prefix), ...wide])].sort()
  }

  member(session: string): AddressedMember | undefined {
    return this.sessions.get(session)
  }

  join(member: AddressedMember): void {
    this.sessions.join(member)
  }

  leave(session: string): void {
    this.sessions.leave(session)
  }

  seen(session: string): number {
    return this.sessions.seen(session)
  }

  see(session: string, now: number): void {
    this.sessions.see(session, now)
  }

  watch(session: string, key: string): void {
    this.sessions.watch(session, key)
  }

  unwatch(session: string, key: string): void {
    this.sessions.unwatch(session, key)
  }

  watchers(keys: readonly string[]): { session: string; key: string }[] {
    return this.sessions.watchers(keys)
  }

  values(keys: readonly string[]): Versioned[] {
    return this.#values.values(keys)
  }

  list(list: List): string[] {
    return this.#values.list(list)
  }

  put(key: string, value: string | undefined, version: number): void {
    this.#values.put(key, value, version)
  }

  nextVersion(): number {
    return this.#counter.next()
  }

  recorded(ids: readonly RecordedId[]): boolean[] {
    return this.#values.recorded(ids)
  }

  record(key: string, id: string, retention: number): void {
    this.#values.record(key, id, retention)
  }

  limiter(name: string): LimiterState | undefined {
    return this.#limits.get(name)
  }

  limiterNames(): string[] {
    return this.#limits.names()
  }

  keepLimiter(name: string, state: LimiterState, forgottenIn: number): void {
    this.#limits.put(name, state, forgottenIn)
  }

  #requestsLike({ claims }: Request): NarrowRequests | WideRequests {
    return claims.length === 1 ? this.#narrow : this.#wide
  }

  #outdated(): void {
    this.#counter.forget()
    this.#narrow.outdated()
    this.#wide.outdated()
    this.sessions.outdated()
  }
}

/** Yields the entries of both in the order of their tickets. */
function* merged(narrow: Iterable<TicketedEntry>, wide: readonly TicketedEntry[]): Generator<TicketedEntry> {
  let next = 0
  for (const entry of narrow) {
    while (next < wide.length && wide[next]!.request.ticket < entry.request.ticket) yield wide[next++]!
    yield entry
  }
  yield* wide.slice(next)
}

/** Returns the requests that an operation names. Their claims show which rows it needs. */
function requestsIn(purpose: Purpose): readonly LockRequest[] {
  switch (purpose.type) {
    case 'alive':
      return purpose.requests
    case 'extendOrYield':
      return [purpose.request, purpose.next]
    case 'commit':
      return purpose.guard ? [purpose.guard.request] : []
    default:
      return 'request' in purpose ? [purpose.request] : []
  }
}
