import type { Entry, Request, TableState } from '../../locks/table.js'
import type { StoreState } from '../../store/commit.js'
import type { WatchState } from '../decisions.js'
import type { Member, RecordedId, Versioned } from '../engine.js'
import type { Connection, Statement } from './driver.js'
import { queueOf, queueText, requestFrom, requestText } from './queue-text.js'

/** A member with the socket by which it is reached. */
export interface AddressedMember extends Member {
  readonly address: string
}

/** The key of the row that holds the counter: no lock has an empty key. */
const COUNTER = ''
/** How far the durable mark is kept ahead of the counter, and when it is moved. */
const MARK_AHEAD = 2 ** 22
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
export class FileState implements TableState, StoreState, WatchState {
  readonly #session: string
  readonly #sql: ReturnType<typeof statements>
  readonly #queues = new Map<string, Entry[]>()
  /** The requests for several keys that stand in remembered queues, by id. */
  readonly #requests = new Map<string, Request>()
  /** Own requests by id, with the first of their keys: where to look for one. */
  readonly #homes = new Map<string, string>()
  readonly #dirtyQueues = new Set<string>()
  readonly #dirtyRequests = new Set<Request>()
  readonly #goneRequests = new Set<string>()
  readonly #members = new Map<string, AddressedMember>()
  readonly #writes = new Map<string, { value: string | undefined; version: number }>()
  #records: { key: string; id: string; until: number }[] = []
  #dataVersion: unknown
  #counter: number | undefined
  #counterChanged = false
  #mark = 0
  #recordsSinceSweep = 0
  #sweptTo: readonly [key: string, id: string] = ['', '']

  /** @param session whose requests are looked for by id. */
  constructor(connection: Connection, session: string) {
    this.#session = session
    this.#sql = statements(connection)
  }

  /** Begins an operation: forgets what others may have changed since the last one. */
  begin(): void {
    const dataVersion = this.#sql.dataVersion.get()![0]
    if (dataVersion !== this.#dataVersion || this.#queues.size > MOST_REMEMBERED) this.forget()
    this.#dataVersion = dataVersion
  }

  /** Forgets all that is remembered: after a transaction that was rolled back, too. */
  forget(): void {
    this.#queues.clear()
    this.#requests.clear()
    this.#members.clear()
    this.#dirtyQueues.clear()
    this.#dirtyRequests.clear()
    this.#goneRequests.clear()
    this.#writes.clear()
    this.#records = []
    this.#counter = undefined
    this.#counterChanged = false
  }

  /** Writes what the operation has changed. */
  flush(): void {
    this.#flushQueues()
    for (const request of this.#dirtyRequests) this.#sql.putRequest.run(request.id, requestText(request))
    for (const id of this.#goneRequests) this.#sql.deleteRequest.run(id)
    if (this.#writes.size > 0) this.#flushWrites()
    if (this.#records.length > 0) this.#flushRecords()
    if (this.#counterChanged) this.#sql.putQueue.run(COUNTER, String(this.#counter))
    this.#dirtyQueues.clear()
    this.#dirtyRequests.clear()
    this.#goneRequests.clear()
    this.#counterChanged = false
  }

  queue(key: string): readonly Entry[] | undefined {
    let queue = this.#queues.get(key)
    if (!queue) {
      const row = this.#sql.queue.get(key)
      queue = row ? queueOf(key, row[0] as string, id => this.#several(id)) : []
      this.#queues.set(key, queue)
    }
    return queue.length > 0 ? queue : undefined
  }

  request(id: string): Request | undefined {
    const home = this.#homes.get(id)
    if (home === undefined) return undefined
    return this.queue(home)?.find(entry => entry.request.id === id)?.request
  }

  /** Forgets an own request that is gone for good. */
  forgetRequest(id: string): void {
    this.#homes.delete(id)
  }

  append(request: Request): void {
    if (request.session === this.#session) this.#homes.set(request.id, request.claims[0]!.key)
    this.#load(request)
    for (const claim of request.claims) {
      this.#loaded(claim.key).push({ request, claim })
      this.#dirtyQueues.add(claim.key)
    }
    if (request.claims.length > 1) {
      this.#requests.set(request.id, request)
      this.#dirtyRequests.add(request)
    }
  }

  remove(request: Request): void {
    this.#load(request)
    for (const { key } of request.claims) {
      const queue = this.#loaded(key)
      const place = queue.findIndex(entry => entry.request.id === request.id)
      if (place >= 0) queue.splice(place, 1)
      this.#dirtyQueues.add(key)
    }
    if (request.claims.length === 1) return
    this.#requests.delete(request.id)
    this.#dirtyRequests.delete(request)
    this.#goneRequests.add(request.id)
  }

  changed(request: Request): void {
    // A request for several keys stands in a row of its own; its queues hold its id and nothing that changes.
    if (request.claims.length > 1) this.#dirtyRequests.add(request)
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
    for (const key of this.keys('')) {
      for (const { request } of this.queue(key) ?? [])
        if (request.session === session) found.set(request.id, request)
    }
    return [...found.values()]
  }

  keys(prefix: string): string[] {
    return this.#sql.keys.all(prefix, prefix).map(row => row[0] as string)
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

  #flushQueues(): void {
    const kept: Record<string, string> = {}
    const gone: string[] = []
    for (const key of this.#dirtyQueues) {
      const queue = this.#queues.get(key)!
      if (queue.length > 0) kept[key] = queueText(queue)
      else gone.push(key)
    }
    const entries = Object.entries(kept)
    if (entries.length < MANY) for (const [key, text] of entries) this.#sql.putQueue.run(key, text)
    else this.#sql.putQueues.run(JSON.stringify(entries))
    if (gone.length < MANY) for (const key of gone) this.#sql.deleteQueue.run(key)
    else this.#sql.deleteQueues.run(JSON.stringify(gone))
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
    const last = this.#sql.endOfSweep.get(...this.#sweptTo, SWEEP)
    const [key, id] = (last ?? [null, null]) as [string | null, string | null]
    if (key === null || id === null) this.#sql.sweepRest.run(...this.#sweptTo, Date.now())
    else this.#sql.sweep.run(...this.#sweptTo, key, id, Date.now())
    this.#sweptTo = key === null || id === null ? ['', ''] : [key, id]
  }

  /** The queue of a key, empty or not, which may be changed. */
  #loaded(key: string): Entry[] {
    this.queue(key)
    return this.#queues.get(key)!
  }

  /** Reads all queues of a request at once. */
  #load(request: Request): void {
    const missing = request.claims.map(({ key }) => key).filter(key => !this.#queues.has(key))
    if (missing.length < MANY) return
    const rows = JSON.parse(this.#sql.queues.get(JSON.stringify(missing))![0] as string) as (string | null)[]
    missing.forEach((key, index) => {
      const text = rows[index] ?? null
      this.#queues.set(key, text === null ? [] : queueOf(key, text, id => this.#several(id)))
    })
  }

  /** A request for several keys: one and the same object in all its queues. */
  #several(id: string): Request {
    let request = this.#requests.get(id)
    if (!request) {
      request = requestFrom(this.#sql.request.get(id)![0] as string)
      this.#requests.set(id, request)
    }
    return request
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
    queues: prepare(
      'select json_group_array(q.queue) as texts from json_each(?) k left join queues q on q.key = k.value',
    ),
    putQueue: prepare(
      'insert into queues values (?, ?) on conflict (key) do update set queue = excluded.queue',
    ),
    putQueues: prepare(
      `insert into queues select value ->> 0, value ->> 1 from json_each(?) where true
       on conflict (key) do update set queue = excluded.queue`,
    ),
    deleteQueue: prepare('delete from queues where key = ?'),
    deleteQueues: prepare('delete from queues where key in (select value from json_each(?))'),
    keys: prepare(`select key from queues where key > '' and substr(key, 1, length(?)) = ? order by key`),
    request: prepare('select request from requests where id = ?'),
    putRequest: prepare(
      'insert into requests values (?, ?) on conflict (id) do update set request = excluded.request',
    ),
    deleteRequest: prepare('delete from requests where id = ?'),
    member: prepare('select host, pid, label, address from sessions where session = ?'),
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
    endOfSweep: prepare('select key, id from ids where (key, id) > (?, ?) order by key, id limit 1 offset ?'),
    sweep: prepare('delete from ids where (key, id) > (?, ?) and (key, id) <= (?, ?) and until <= ?'),
    sweepRest: prepare('delete from ids where (key, id) > (?, ?) and until <= ?'),
    mark: prepare('select mark from machine'),
    putMark: prepare('update machine set mark = ?'),
  }
}
