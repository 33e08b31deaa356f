import type { LockRequest, SessionInfo, RecordedId, Versioned } from '../../engine/contract.js'
import type { EngineState, Purpose } from '../../engine/kit/state-engine.js'
import type { Request } from '../../engine/lock-table.js'
import type { LimiterState } from '../../limits/rules/reserve.js'
import type { Connection, Statement } from './driver.js'
import { LimitRows } from './limit-rows.js'
import { queueOf, queueText, type TicketedEntry } from './queue-text.js'
import { WideRequests } from './wide-requests.js'

/** A member with the socket by which it is reached. */
export interface AddressedMember extends SessionInfo {
  readonly address: string
}

/** The key of the row that holds the counter: no lock has an empty key. */
const COUNTER = ''
/** How far the durable mark is kept ahead of the counter, and when it is moved. */
export const MARK_AHEAD = 2 ** 22
const MARK_LEAST = 2 ** 21
/** So many queues are remembered between transactions. */
const MOST_REMEMBERED = 4096
/** From so many rows on, one statement that takes them as JSON is faster than one for each. */
const MANY = 4
/** For each id that is recorded, so many old ones are looked at; ids are swept when this many are due. */
const SWEEP = 512

/**
 * The state of the lock table and the store in the database, for use inside a write transaction. Queues are remembered
 * from one transaction to the next for as long as nobody else has written; what an operation changes is written when it
 * is done.
 */
export class FileState implements EngineState {
  readonly #sql: ReturnType<typeof statements>
  readonly #wide: WideRequests
  readonly #limits: LimitRows
  /** The requests that claim a key alone, by key; empty for a key that is known to have none. */
  readonly #queues = new Map<string, TicketedEntry[]>()
  /** Whether no key has such requests; undefined when that is not known. */
  #allFree: boolean | undefined
  /** The requests that the operation is about: they tell the key in whose queue a request is. */
  #about: readonly LockRequest[] = []
  readonly #dirtyQueues = new Set<string>()
  readonly #members = new Map<string, AddressedMember>()
  readonly #writes = new Map<string, { value: string | undefined; version: number }>()
  #records: { key: string; id: string; until: number }[] = []
  #dataVersion: unknown
  #counter: number | undefined
  #counterChanged = false
  #mark = 0
  // Processes that record little and end sweep now and then, too, each at another place.
  #recordsSinceSweep = Math.floor((Math.random() * SWEEP) / 2)
  #sweptTo: readonly [key: string, id: string] | undefined

  constructor(connection: Connection) {
    this.#wide = new WideRequests(connection)
    this.#limits = new LimitRows(connection)
    this.#sql = statements(connection)
  }

  /** Does the work of one operation and writes what it has changed, inside a transaction. */
  change<T>(work: (state: FileState) => T, purpose: Purpose): T {
    this.#forgetOutdated()
    this.#about = requestsIn(purpose)
    const result = work(this)
    this.#flush()
    return result
  }

  /** Forgets all that is remembered: after a transaction that was rolled back. */
  forget(): void {
    this.#outdated()
    this.#wide.forget()
    this.#limits.forget()
    this.#dirtyQueues.clear()
    this.#writes.clear()
    this.#records = []
    this.#counterChanged = false
  }

  queue(key: string): readonly TicketedEntry[] | undefined {
    const narrow = this.#narrow(key)
    const wide = this.#wide.queue(key)
    if (!wide) return narrow.length > 0 ? narrow : undefined
    if (narrow.length === 0) return wide
    return [...narrow, ...wide].sort((a, b) => a.request.ticket - b.request.ticket)
  }

  request(id: string): Request | undefined {
    const claims = this.#about.find(request => request.id === id)?.claims
    if (claims?.length !== 1) return this.#wide.get(id)
    return this.#narrow(claims[0]!.key).find(entry => entry.request.id === id)?.request
  }

  append(request: Request): void {
    const ticket = this.nextNumber()
    if (request.claims.length > 1) return this.#wide.append(request, ticket)
    const claim = request.claims[0]!
    this.#narrow(claim.key).push({ request: Object.assign(request, { ticket }), claim })
    this.#allFree = false
    this.#dirtyQueues.add(claim.key)
  }

  remove(request: Request): void {
    if (this.#wide.has(request)) return this.#wide.remove(request)
    const { key } = request.claims[0]!
    const queue = this.#narrow(key)
    queue.splice(
      queue.findIndex(entry => entry.request === request),
      1,
    )
    this.#dirtyQueues.add(key)
  }

  changed(request: Request): void {
    if (this.#wide.has(request)) this.#wide.changed(request)
    else this.#dirtyQueues.add(request.claims[0]!.key)
  }

  nextNumber(): number {
    const number = this.#count() + 1
    // A counter past its mark could be used again after a power cut; a mark this far ahead is durable long before.
    if (number + MARK_LEAST > this.#mark) {
      this.#mark = number + MARK_AHEAD
      this.#sql.putMark.run(this.#mark)
    }
    this.#counter = number
    this.#counterChanged = true
    return number
  }

  nextVersion(): number {
    return this.nextNumber()
  }

  /** The counter, and the mark that it must not pass before that is durable. */
  #count(): number {
    if (this.#counter === undefined) {
      this.#mark = this.#sql.mark.get()![0] as number
      this.#counter = Number(this.#sql.queue.get(COUNTER)![0])
    }
    return this.#counter
  }

  requestsOf(session: string): Request[] {
    const found = new Map<string, Request>()
    // A queue is JSON, so a session stands there in quotes; others may have it in a label, and are sorted out below.
    for (const [key] of this.#sql.keysWith.all(JSON.stringify(session))) {
      for (const { request } of this.#narrow(key as string)) found.set(request.id, request)
    }
    for (const request of this.#wide.all()) found.set(request.id, request)
    return [...found.values()].filter(request => request.session === session)
  }

  keys(prefix: string): string[] {
    const narrow = this.#sql.keys.all(prefix, prefix).map(row => row[0] as string)
    const wide = [...this.#wide.keys()].filter(key => key.startsWith(prefix))
    return [...new Set([...narrow, ...wide])].sort()
  }

  member(session: string): AddressedMember | undefined {
    const known = this.#members.get(session)
    if (known) return known
    const row = this.#sql.member.get(session)
    if (!row) return undefined
    const [host, pid, label, address] = row as [string, number, string | null, string]
    const member = { session, host, pid, label: label ?? undefined, address }
    this.#members.set(session, member)
    return member
  }

  /** All who are there. */
  sessions(): string[] {
    return this.#sql.sessions.all().map(row => row[0] as string)
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

  values(keys: readonly string[]): Versioned[] {
    if (keys.length === 0) return []
    if (keys.length === 1) return [versioned(this.#sql.value.get(keys[0]!))]
    const rows = JSON.parse(this.#sql.values.get(JSON.stringify(keys))![0] as string) as [
      string | null,
      number | null,
    ][]
    return rows.map(versioned)
  }

  put(key: string, value: string | undefined, version: number): void {
    this.#writes.set(key, { value, version })
  }

  recorded(ids: readonly RecordedId[]): boolean[] {
    if (ids.length === 0) return []
    const pairs = JSON.stringify(ids.map(({ key, id }) => [key, id]))
    return (JSON.parse(this.#sql.recorded.get(pairs)![0] as string) as number[]).map(Boolean)
  }

  record(key: string, id: string, retention: number): void {
    this.#records.push({ key, id, until: Date.now() + retention })
  }

  limiter(name: string): LimiterState | undefined {
    return this.#limits.get(name)
  }

  keepLimiter(name: string, state: LimiterState, forgottenIn: number): void {
    const wall = Date.now()
    this.#limits.put(name, state, wall + forgottenIn, wall)
  }

  /** Forgets what others may have changed since the last operation. */
  #forgetOutdated(): void {
    const dataVersion = this.#sql.dataVersion.get()![0]
    if (dataVersion !== this.#dataVersion) {
      this.#outdated()
      this.#wide.outdated()
    } else if (this.#queues.size > MOST_REMEMBERED) this.#outdated()
    this.#dataVersion = dataVersion
  }

  #outdated(): void {
    this.#queues.clear()
    this.#members.clear()
    this.#allFree = undefined
    this.#counter = undefined
  }

  /** Writes what the operation has changed. */
  #flush(): void {
    this.#flushQueues()
    this.#wide.flush()
    if (this.#writes.size > 0) this.#flushWrites()
    if (this.#records.length > 0) this.#flushRecords()
    if (this.#counterChanged) this.#sql.putQueue.run(COUNTER, String(this.#counter))
    this.#dirtyQueues.clear()
    this.#counterChanged = false
  }

  #flushQueues(): void {
    for (const key of this.#dirtyQueues) {
      const queue = this.#queues.get(key)!
      if (queue.length > 0) this.#sql.putQueue.run(key, queueText(queue))
      else this.#sql.deleteQueue.run(key)
    }
  }

  #flushWrites(): void {
    const puts: [string, string, number][] = []
    for (const [key, { value, version }] of this.#writes) {
      if (value === undefined) this.#sql.deleteValue.run(key)
      else puts.push([key, value, version])
    }
    if (puts.length < MANY) for (const put of puts) this.#sql.putValue.run(...put)
    else this.#sql.putValues.run(JSON.stringify(puts))
    this.#writes.clear()
  }

  #flushRecords(): void {
    this.#sql.putIds.run(JSON.stringify(this.#records.map(({ key, id, until }) => [key, id, until])))
    this.#recordsSinceSweep += this.#records.length
    this.#records = []
    if (this.#recordsSinceSweep >= SWEEP / 2) this.#sweepIds()
  }

  /** Looks at the next stretch of ids for those whose time is over: twice as many as have come since. */
  #sweepIds(): void {
    this.#recordsSinceSweep = 0
    const from = this.#sweptTo ?? (this.#sql.anyId.get(Math.random()) as [string, string])
    const last = this.#sql.endOfSweep.get(...from, SWEEP)
    const [key, id] = (last ?? [null, null]) as [string | null, string | null]
    if (key === null || id === null) this.#sql.sweepRest.run(...from, Date.now())
    else this.#sql.sweep.run(...from, key, id, Date.now())
    this.#sweptTo = key === null || id === null ? ['', ''] : [key, id]
  }

  /** The requests that claim a key alone, none or some; the list may be changed. */
  #narrow(key: string): TicketedEntry[] {
    let queue = this.#queues.get(key)
    if (!queue) {
      // Where nobody claims a key alone, a hundred keys need not be looked up one by one.
      this.#allFree ??= this.#sql.anyQueue.get() === undefined
      const row = this.#allFree ? undefined : this.#sql.queue.get(key)
      queue = row ? queueOf(key, row[0] as string) : []
      this.#queues.set(key, queue)
    }
    return queue
  }
}

/** The requests that an operation names. */
function requestsIn(purpose: Purpose): LockRequest[] {
  switch (purpose.type) {
    case 'extendOrYield':
      return [purpose.request, purpose.next]
    case 'commit':
      return purpose.guard ? [purpose.guard.request] : []
    default:
      return 'request' in purpose ? [purpose.request] : []
  }
}

function versioned(row: readonly unknown[] | undefined): Versioned {
  const [value, version] = (row ?? [null, null]) as [string | null, number | null]
  return { value: value ?? undefined, version: version ?? 0 }
}

function statements(connection: Connection) {
  const prepare = (sql: string): Statement => connection.prepare(sql)
  return {
    dataVersion: prepare('pragma data_version'),
    queue: prepare('select queue from queues where key = ?'),
    anyQueue: prepare(`select 1 from queues where key > '' limit 1`),
    putQueue: prepare(
      'insert into queues values (?, ?) on conflict (key) do update set queue = excluded.queue',
    ),
    deleteQueue: prepare('delete from queues where key = ?'),
    keys: prepare(`select key from queues where key > '' and substr(key, 1, length(?)) = ? order by key`),
    member: prepare('select host, pid, label, address from sessions where session = ?'),
    keysWith: prepare(`select key from queues where key > '' and instr(queue, ?) > 0`),
    sessions: prepare('select session from sessions'),
    join: prepare('insert into sessions values (?, ?, ?, ?, ?)'),
    leave: prepare('delete from sessions where session = ?'),
    watch: prepare('insert or ignore into watches values (?, ?)'),
    unwatch: prepare('delete from watches where key = ? and session = ?'),
    unwatchAll: prepare('delete from watches where session = ?'),
    anyWatch: prepare('select 1 from watches limit 1'),
    watchers: prepare('select key, session from watches where key in (select value from json_each(?))'),
    value: prepare('select value, version from entries where key = ?'),
    values: prepare(
      `select json_group_array(json_array(e.value, e.version)) as found
       from json_each(?) k left join entries e on e.key = k.value`,
    ),
    putValue: prepare(
      `insert into entries values (?, ?, ?)
       on conflict (key) do update set value = excluded.value, version = excluded.version`,
    ),
    putValues: prepare(
      `insert into entries select value ->> 0, value ->> 1, value ->> 2 from json_each(?) where true
       on conflict (key) do update set value = excluded.value, version = excluded.version`,
    ),
    deleteValue: prepare('delete from entries where key = ?'),
    recorded: prepare(
      `select json_group_array(exists (select 1 from ids i where i.key = p.value ->> 0 and i.id = p.value ->> 1)) as found
       from json_each(?) p`,
    ),
    putIds: prepare(
      `insert into ids select value ->> 0, value ->> 1, value ->> 2 from json_each(?) where true
       on conflict (key, id) do update set until = excluded.until`,
    ),
    anyId: prepare('select key, id from ids limit 1 offset cast(? * (select count(*) from ids) as integer)'),
    endOfSweep: prepare('select key, id from ids where (key, id) > (?, ?) order by key, id limit 1 offset ?'),
    sweep: prepare('delete from ids where (key, id) > (?, ?) and (key, id) <= (?, ?) and until <= ?'),
    sweepRest: prepare('delete from ids where (key, id) > (?, ?) and until <= ?'),
    mark: prepare('select mark from machine'),
    putMark: prepare('update machine set mark = ?'),
  }
}
