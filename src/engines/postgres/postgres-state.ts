import type { LockRequest, RecordedId, SessionInfo, Versioned } from '../../engine/contract.js'
import { withInfinity } from '../../engine/kit/memory-state.js'
import type { EngineState } from '../../engine/kit/state-engine.js'
import type { Entry, Request } from '../../engine/lock-table.js'
import type { LimiterState } from '../../limits/rules/reserve.js'
import { mainKey, owned, placesOf, queueData, type OwnedRequest, type Place } from './lock-row.js'
import { LIMITS, LOCKS, markOf, rowName } from './names.js'
import type { Row, Rows } from './rows.js'
import { valueData, valueOf, WATCH_LIFE } from './value-row.js'

/** What a decision has read and wants to write. */
export interface Draft {
  /** By their numbers, which is the order in which rows are locked. */
  readonly read: readonly Row[]
  readonly written: ReadonlyMap<Row, string>
  readonly marks: readonly Mark[]
  /** What stands for the ids that were taken for not recorded. */
  readonly looked: readonly string[]
  /** Rows of keys that are granted. */
  readonly granted: readonly Row[]
  /** The version of all rows that are written. */
  readonly next: number
  /** Whether a value is among them. */
  readonly isDurable: boolean
}

/** An id to record. */
export interface Mark {
  readonly mark: string
  /** Server time. */
  readonly until: number
  /** Whether the decision has found that it was not recorded. */
  readonly mustBeNew: boolean
}

/** The state over the rows that are known: what one decision after the other reads and changes, until it is written. */
export class PostgresState implements EngineState {
  readonly #rows: Rows
  readonly #own: () => SessionInfo
  /** The requests of parsed rows, by id. */
  readonly #requests = new Map<string, OwnedRequest>()
  readonly #queues = new Map<string, Entry[]>()
  readonly #places = new Map<Row, readonly Place[]>()
  readonly #read = new Set<Row>()
  readonly #changedKeys = new Set<string>()
  readonly #written = new Map<Row, string>()
  readonly #granted = new Set<Row>()
  /** The numbers given since the draft was begun. */
  readonly #given = new Set<number>()
  /** The rows that were found bound to transactions of earlier holders. */
  readonly #bound = new Set<number>()
  readonly #marks = new Map<string, Mark>()
  /** What stands for the ids that were found to be recorded. */
  readonly #recorded = new Set<string>()
  readonly #absent = new Set<string>()
  readonly #lookedFor = new Set<string>()
  readonly #missing = new Set<string>()
  #about: readonly LockRequest[] = []
  #now = 0
  #number = 0
  #isDurable = false

  constructor(rows: Rows, own: () => SessionInfo) {
    this.#rows = rows
    this.#own = own
  }

  /** The name of the row with this request; undefined when it is not known. */
  nameOf(request: string): string | undefined {
    const claims = this.#requests.get(request)?.claims
    return claims && rowName('lock', mainKey(claims))
  }

  /** Begins a draft. @param now server time. */
  begin(now: number): void {
    this.#read.clear()
    this.#changedKeys.clear()
    this.#written.clear()
    this.#granted.clear()
    this.#given.clear()
    this.#marks.clear()
    this.#lookedFor.clear()
    this.#missing.clear()
    this.#isDurable = false
    this.#now = now
    this.#number = Math.floor(now * 1000)
  }

  /**
   * The names of rows that the decisions need, and that are not known or were not read at one moment. The decisions
   * take them for empty and go on, so that one look brings all of them. What was decided then is of no use.
   */
  get missing(): ReadonlySet<string> {
    return this.#missing
  }

  /** The requests that the next decision is about: their claims tell where a request is found by its id. */
  about(requests: readonly LockRequest[]): void {
    this.#about = requests
  }

  /** Forgets which rows are absent. */
  forgetAbsent(): void {
    this.#absent.clear()
  }

  /** Takes on that a row is not there, and need not be made to be read. */
  absent(name: string): void {
    this.#absent.add(name)
  }

  /** Takes on which ids are recorded. All others are taken for not recorded until the change is refused for them. */
  found(marks: readonly string[]): void {
    for (const mark of marks) this.#recorded.add(mark.replaceAll('-', ''))
  }

  /** Takes on which rows are bound to transactions of earlier holders. */
  bind(rows: Iterable<number>): void {
    for (const id of rows) this.#bound.add(id)
  }

  /** Forgets which ids are recorded, and which rows are bound. */
  forgetFound(): void {
    this.#recorded.clear()
    this.#bound.clear()
  }

  /** Forgets what was decided, and what was parsed of rows that may be others by now. */
  discard(): void {
    this.#requests.clear()
    this.#queues.clear()
    this.#places.clear()
  }

  /** The rows that were read since the draft was begun. */
  get read(): readonly Row[] {
    return [...this.#read].sort((a, b) => a.id - b.id)
  }

  draft(): Draft {
    for (const key of this.#changedKeys) {
      const requests = this.#queues.get(key)!.map(({ request }) => request as OwnedRequest)
      this.#written.set(this.#row('lock', key), queueData(key, requests))
    }
    return {
      read: this.read,
      written: this.#written,
      granted: [...this.#granted],
      marks: [...this.#marks.values()],
      looked: [...this.#lookedFor].filter(mark => !this.#recorded.has(mark)),
      next: this.#next(),
      isDurable: this.#isDurable,
    }
  }

  queue(key: string): readonly Entry[] | undefined {
    const queue = this.#queue(key)
    return queue.length > 0 ? queue : undefined
  }

  request(id: string): Request | undefined {
    const about = this.#about.find(request => request.id === id)
    return about && this.#queue(mainKey(about.claims)).find(({ request }) => request.id === id)?.request
  }

  append(request: Request): void {
    const mine = owned(request, this.#own())
    this.#requests.set(request.id, mine)
    for (const claim of request.claims) {
      this.#queue(claim.key).push({ request: mine, claim })
      this.#changedKeys.add(claim.key)
    }
  }

  remove(request: Request): void {
    // All are read before one is changed: they name the same request.
    const queues = request.claims.map(({ key }) => this.#queue(key))
    for (const [index, { key }] of request.claims.entries()) {
      const queue = queues[index]!
      queue.splice(
        queue.findIndex(entry => entry.request === request),
        1,
      )
      this.#changedKeys.add(key)
    }
    this.#requests.delete(request.id)
  }

  changed(request: Request): void {
    const key = mainKey(request.claims)
    this.#queue(key)
    this.#changedKeys.add(key)
    if (request.phase === 'held' && this.#given.has(request.number))
      for (const claim of request.claims) this.#granted.add(this.#row('lock', claim.key))
  }

  nextNumber(): number {
    const number = this.#next()
    this.#given.add(number)
    return number
  }

  isBound(key: string): boolean {
    return this.#bound.size > 0 && this.#bound.has(this.#row('lock', key).id)
  }

  requestsOf(session: string): Request[] {
    // The rows with requests of the session were read before.
    this.#parseAll()
    return [...this.#requests.values()].filter(request => request.session === session)
  }

  keys(prefix: string): string[] {
    this.#parseAll()
    const claims = [...this.#requests.values()].flatMap(request => request.claims)
    return [...new Set(claims.map(({ key }) => key))]
      .filter(key => key.startsWith(prefix) && this.queue(key))
      .sort()
  }

  member(session: string): SessionInfo {
    for (const { session: other, host, pid } of this.#requests.values())
      if (other === session) return { session, host, pid, label: undefined }
    return { session, host: '', pid: 0, label: undefined }
  }

  join(): void {
    // A session is known by its requests and the channel that it listens to.
  }

  leave(): void {
    // Nothing is kept of it.
  }

  watch(session: string, key: string): void {
    this.#changeValue(key, ({ watchers }) => watchers.set(session, this.#now + WATCH_LIFE))
  }

  unwatch(session: string, key: string): void {
    this.#changeValue(key, ({ watchers }) => watchers.delete(session))
  }

  watchers(keys: readonly string[]): { session: string; key: string }[] {
    return keys.flatMap(key => {
      const { watchers } = this.#value(key)
      const live = [...watchers].filter(([, until]) => until > this.#now)
      return live.map(([session]) => ({ session, key }))
    })
  }

  values(keys: readonly string[]): Versioned[] {
    return keys.map(key => {
      const { value, version } = this.#value(key)
      return { value, version: value === undefined ? 0 : version }
    })
  }

  put(key: string, value: string | undefined, version: number): void {
    this.#isDurable = true
    this.#changeValue(key, stored => Object.assign(stored, { value, version }))
  }

  nextVersion(): number {
    return this.#next()
  }

  recorded(ids: readonly RecordedId[]): boolean[] {
    return ids.map(id => {
      const mark = markOf(id)
      this.#lookedFor.add(mark)
      return this.#marks.has(mark) || this.#recorded.has(mark)
    })
  }

  record(key: string, id: string, retention: number): void {
    const mark = markOf({ key, id })
    this.#isDurable = true
    this.#marks.set(mark, { mark, until: this.#now + retention, mustBeNew: this.#lookedFor.has(mark) })
  }

  limiter(name: string): LimiterState | undefined {
    const row = this.#touched(this.#row('limit', name))
    // An earlier decision of the same draft may be about the same limiter.
    const data = this.#written.get(row) ?? row.data
    return data === '' ? undefined : (JSON.parse(data.slice(data.indexOf(' ')), withInfinity) as LimiterState)
  }

  /** A limiter whose name is too long for an index is not among them. */
  limiterNames(): string[] {
    const known = [...this.#rows.names()].filter(name => name.startsWith(LIMITS))
    return known.map(name => name.slice(LIMITS.length))
  }

  keepLimiter(name: string, state: LimiterState, forgottenIn: number): void {
    const data = `${this.#now + forgottenIn} ${JSON.stringify(state)}`
    this.#written.set(this.#touched(this.#row('limit', name)), data)
  }

  #next(): number {
    return ++this.#number
  }

  #row(kind: Parameters<typeof rowName>[0], key: string): Row {
    const name = rowName(kind, key)
    const row = this.#rows.get(name)
    if (row) return row
    this.#missing.add(name)
    return { name, id: 0, version: 0, data: '' }
  }

  /** Whether the database is known to have no row of this name. */
  #isAbsent(name: string): boolean {
    return this.#absent.has(name) && !this.#rows.get(name)
  }

  /** Counts a row among those by which the draft was decided. */
  #touched(row: Row): Row {
    this.#read.add(row)
    if (row.version > this.#number) this.#number = row.version
    return row
  }

  /** The entries for a key. */
  #queue(key: string): Entry[] {
    const name = rowName('lock', key)
    if (this.#isAbsent(name)) return []
    const row = this.#touched(this.#row('lock', key))
    let queue = this.#queues.get(key)
    if (!queue) {
      const requests = this.#parse(row)
      queue = requests.map(request => ({ request, claim: request.claims.find(claim => claim.key === key)! }))
      this.#queues.set(key, queue)
    }
    // What is known of a request for several keys is in the row of its main one.
    for (const { request } of queue)
      if (request.claims.length > 1) this.#touched(this.#row('lock', mainKey(request.claims)))
    return queue
  }

  /** The requests in the queue of a row. */
  #parse(row: Row): OwnedRequest[] {
    return this.#placesIn(row).flatMap(place => {
      const id = 'request' in place ? place.request.id : place.id
      const known = this.#requests.get(id)
      if (known || !('first' in place)) return known ?? []
      const first = this.#row('lock', place.first)
      this.#placesIn(first)
      const request = this.#requests.get(id)
      if (request) return request
      // The two rows were not read at one moment.
      this.#missing.add(row.name).add(first.name)
      return []
    })
  }

  /** The places of a row, when it was parsed. From then on its own requests are known. */
  #placesIn(row: Row): readonly Place[] {
    let places = this.#places.get(row)
    if (!places) {
      places = placesOf(row.data)
      this.#places.set(row, places)
      for (const place of places) if ('request' in place) this.#requests.set(place.request.id, place.request)
    }
    return places
  }

  #parseAll(): void {
    for (const name of this.#rows.names()) if (name.startsWith(LOCKS)) this.#placesIn(this.#rows.get(name)!)
  }

  #value(key: string) {
    const name = rowName('value', key)
    if (this.#isAbsent(name)) return valueOf('')
    const row = this.#touched(this.#row('value', key))
    return valueOf(this.#written.get(row) ?? row.data)
  }

  #changeValue(key: string, change: (stored: ReturnType<typeof valueOf>) => void): void {
    const stored = this.#value(key)
    change(stored)
    this.#written.set(this.#row('value', key), valueData(stored, this.#now))
  }
}
