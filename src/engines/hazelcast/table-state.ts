import type { Entry, Request, TableState } from '../../engine/lock-table.js'
import type { StoreState } from '../../engine/commit.js'
import type { WatchState } from '../../engine/state-machine.js'
import type { SessionInfo, RecordedId, Versioned } from '../../engine/contract.js'
import type { Sightings } from './sightings.js'
import {
  marked,
  microseconds,
  textOfMark,
  type Mark,
  type RequestRecord,
  type TableRecord,
} from './table-record.js'
import { decodeEntry, encodeEntry, stampOf, type ValueEntry } from './value-entry.js'

const ABSENT: ValueEntry = { stamp: 0, version: 0, ids: [], value: undefined }

/** A request, with what the record said of it when it was read. */
interface Known {
  readonly request: Request
  readonly before: RequestRecord | undefined
  /** When it expired, as it was read. */
  readonly expired: number
}

/**
 * The table's record, opened: the state that the lock table and the store decide over. Made for one batch of operations,
 * and thrown away when the record was not the newest.
 */
export class OpenTable implements TableState, StoreState, WatchState {
  /** Whether anything was changed. */
  isChanged = false
  readonly #record: TableRecord
  readonly #now: number
  readonly #values: Map<string, string | undefined>
  readonly #members: ReadonlyMap<string, SessionInfo>
  readonly #requests = new Map<string, Known>()
  readonly #queues = new Map<string, Entry[]>()
  readonly #pending: Map<string, string>
  /** Entries of store keys that were looked at, or written. */
  readonly #entries = new Map<string, ValueEntry>()
  /** The keys of those that were written, which are made texts together: a change may write one many times. */
  readonly #written = new Set<string>()
  #number: number
  #version: number

  /**
   * @param floor a version that was used already.
   * @param values the entries of store keys as they are apart from what is pending: of those that operations are to find.
   * @param members who the sessions belong to, as far as anybody wants to know.
   */
  constructor(
    record: TableRecord,
    sightings: Sightings,
    now: number,
    floor: number,
    values: Map<string, string | undefined>,
    members: ReadonlyMap<string, SessionInfo>,
  ) {
    this.#record = record
    this.#now = now
    this.#values = values
    this.#members = members
    this.#pending = new Map(Object.entries(record.pending))
    this.#number = record.number
    this.#version = Math.max(record.version, floor)
    const wall = Date.now()
    for (const before of record.requests) {
      const { id, session, claims, phase, lease, number, label, since } = before
      const expires = sightings.expiry(before)
      const age = Math.max(wall - since, 0)
      const request = { id, session, claims, phase, expires, lease, number, label, since: now - age }
      this.#enter({ request, before, expired: expires })
    }
  }

  queue(key: string): readonly Entry[] | undefined {
    return this.#queues.get(key)
  }

  request(id: string): Request | undefined {
    return this.#requests.get(id)?.request
  }

  append(request: Request): void {
    this.isChanged = true
    this.#enter({ request, before: undefined, expired: NaN })
  }

  remove(request: Request): void {
    this.isChanged = true
    this.#requests.delete(request.id)
    for (const { key } of request.claims) {
      const left = this.#queues.get(key)!.filter(entry => entry.request !== request)
      if (left.length === 0) this.#queues.delete(key)
      else this.#queues.set(key, left)
    }
  }

  changed(): void {
    this.isChanged = true
  }

  nextNumber(): number {
    return (this.#number = Math.max(this.#number + 1, microseconds()))
  }

  requestsOf(session: string): Request[] {
    return [...this.#requests.values()].map(known => known.request).filter(one => one.session === session)
  }

  keys(prefix: string): string[] {
    return [...this.#queues.keys()].filter(key => key.startsWith(prefix))
  }

  member(session: string): SessionInfo | undefined {
    return this.#members.get(session)
  }

  watch(): void {
    // Every box hears of every change of the record, and knows itself what it watches.
  }

  unwatch(): void {
    // As above.
  }

  watchers(): [] {
    return []
  }

  values(keys: readonly string[]): Versioned[] {
    return keys.map(key => {
      const { value, version } = this.#entry(key)
      return { value, version: value === undefined ? 0 : version }
    })
  }

  put(key: string, value: string | undefined, version: number): void {
    const { ids, value: before } = this.#entry(key)
    // What is not there need not be deleted, and nothing has to be remembered of it.
    if (value === undefined && before === undefined) return
    this.#write(key, { stamp: version, version: value === undefined ? 0 : version, ids: live(ids), value })
  }

  nextVersion(): number {
    return (this.#version = Math.max(this.#version + 1, microseconds()))
  }

  recorded(ids: readonly RecordedId[]): boolean[] {
    const now = Date.now()
    return ids.map(({ key, id }) =>
      this.#entry(key).ids.some(([other, until]) => other === id && until > now),
    )
  }

  record(key: string, id: string, retention: number): void {
    const entry = this.#entry(key)
    const ids = [...live(entry.ids), [id, Date.now() + retention] as const]
    this.#write(key, { ...entry, stamp: this.nextVersion(), ids })
  }

  /** Forgets pending changes that have been carried over, by key and stamp. */
  forget(carriedOver: ReadonlyMap<string, number>): void {
    for (const [key, stamp] of carriedOver) {
      const text = this.#pending.get(key)
      if (text === undefined || stampOf(text) > stamp || this.#written.has(key)) continue
      this.#pending.delete(key)
      this.#values.set(key, text)
      this.isChanged = true
    }
  }

  /** The record as it is now, with this mark. */
  close(mark: Mark): TableRecord {
    const { turn, latest } = this.#record
    const beat = textOfMark(mark)
    const wall = Date.now()
    for (const key of this.#written) this.#pending.set(key, encodeEntry(this.#entries.get(key)!))
    return {
      turn: turn + 1,
      number: this.#number,
      version: this.#version,
      follows: latest.at(-1),
      latest: marked(latest, mark),
      requests: [...this.#requests.values()].map(({ request, before, expired }) => {
        const { id, session, claims, phase, expires, lease, number, label, since } = request
        const isHeard = before === undefined || expires !== expired
        return {
          id,
          session,
          claims,
          phase,
          life: isHeard ? expires - this.#now : before.life,
          beat: isHeard ? beat : before.beat,
          lease,
          number,
          label,
          since: before?.since ?? wall - (this.#now - since),
        }
      }),
      pending: Object.fromEntries(this.#pending),
    }
  }

  #enter(known: Known): void {
    const { request } = known
    this.#requests.set(request.id, known)
    for (const claim of request.claims) {
      const queue = this.#queues.get(claim.key)
      if (queue) queue.push({ request, claim })
      else this.#queues.set(claim.key, [{ request, claim }])
    }
  }

  #entry(key: string): ValueEntry {
    const known = this.#entries.get(key)
    if (known) return known
    const text = this.#pending.get(key) ?? this.#values.get(key)
    if (text === undefined) return ABSENT
    const entry = decodeEntry(text)
    this.#entries.set(key, entry)
    return entry
  }

  #write(key: string, entry: ValueEntry): void {
    this.isChanged = true
    this.#entries.set(key, entry)
    this.#written.add(key)
  }
}

function live(ids: ValueEntry['ids']): ValueEntry['ids'] {
  const now = Date.now()
  return ids.filter(([, until]) => until > now)
}
