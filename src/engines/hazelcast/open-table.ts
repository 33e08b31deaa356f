import type { Clock } from '../../clock.js'
import type { RecordedId, SessionInfo, Versioned } from '../../engine/contract.js'
import { MemoryState } from '../../engine/kit/memory-state.js'
import type { Request } from '../../engine/lock-table.js'
import { timeOfVersion } from '../../engine/kit/time-of-version.js'
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

/** How long a request that has expired stays in the record, in milliseconds: its process may be cut off for a while. */
const KEPT = 60_000

const ABSENT: ValueEntry = { stamp: 0, version: 0, ids: [], value: undefined }

/** The state that operations need in addition to the record. */
export interface TableContext {
  readonly sightings: Sightings
  /** Versions up to this one are in use. */
  readonly floor: number
  /** The entries of the store keys that the operations need, except pending ones. */
  readonly entries: ReadonlyMap<string, string | undefined>
  /** The processes of the sessions, if an operation reports them. */
  readonly sessions: ReadonlyMap<string, SessionInfo>
  /** The stamps of the pending changes that were written back, by key. */
  readonly writtenBack: ReadonlyMap<string, number>
}

/**
 * The table's record as a state on which operations are decided. It is created for one batch of them, and discarded if
 * the record turns out not to be the newest. Requests are kept in memory; values come from the record and the entries.
 */
export class OpenTable extends MemoryState {
  /** Whether an operation has changed anything. */
  isChanged = false
  readonly #record: TableRecord
  readonly #context: TableContext
  readonly #now: number
  readonly #before = new Map<Request, { readonly record: RequestRecord; readonly expires: number }>()
  /** The pending changes, without the entries that were written here. */
  readonly #pending: Map<string, string>
  /** Entries of store keys that were read or written. */
  readonly #entries = new Map<string, ValueEntry>()
  /** The keys of written entries. Entries are encoded at the end, because an entry may be written many times. */
  readonly #written = new Set<string>()
  #number: number
  #version: number

  constructor(record: TableRecord, context: TableContext, clock: Clock) {
    super(0, clock)
    this.#record = record
    this.#context = context
    this.#now = clock.now()
    this.#pending = new Map(Object.entries(record.pending))
    this.#number = record.number
    this.#version = Math.max(record.version, context.floor)
    const wall = Date.now()
    for (const each of record.requests) {
      const { id, session, claims, phase, lease, number, label } = each
      const expires = context.sightings.expiry(each)
      // Its process died, and nobody asks for its keys. The next change leaves it out: every box pays for each request.
      if (expires <= this.#now - KEPT) continue
      const since = this.#now - Math.max(wall - each.since, 0)
      const request = { id, session, claims, phase, expires, lease, number, label, since }
      super.append(request)
      this.#before.set(request, { record: each, expires })
    }
  }

  override append(request: Request): void {
    this.isChanged = true
    super.append(request)
  }

  override remove(request: Request): void {
    this.isChanged = true
    super.remove(request)
  }

  override changed(): void {
    this.isChanged = true
  }

  override nextNumber(): number {
    return (this.#number = Math.max(this.#number + 1, microseconds()))
  }

  override member(session: string): SessionInfo | undefined {
    return this.#context.sessions.get(session)
  }

  override values(keys: readonly string[]): Versioned[] {
    return keys.map(key => {
      const { value, version } = this.#entry(key)
      return value === undefined ? { value, version: 0 } : { value, version, changed: timeOfVersion(version) }
    })
  }

  override put(key: string, value: string | undefined, version: number): void {
    const { ids, value: before } = this.#entry(key)
    // Deleting a missing key changes nothing.
    if (value === undefined && before === undefined) return
    this.#write(key, { stamp: version, version: value === undefined ? 0 : version, ids: live(ids), value })
  }

  override nextVersion(): number {
    return (this.#version = Math.max(this.#version + 1, microseconds()))
  }

  override recorded(ids: readonly RecordedId[]): boolean[] {
    const now = Date.now()
    return ids.map(({ key, id }) =>
      this.#entry(key).ids.some(([other, until]) => other === id && until > now),
    )
  }

  override record(key: string, id: string, retention: number): void {
    const entry = this.#entry(key)
    const ids = [...live(entry.ids), [id, Date.now() + retention] as const]
    this.#write(key, { ...entry, stamp: this.nextVersion(), ids })
  }

  /** Removes the pending changes that were written back, except those that were changed since. */
  removeWritten(): void {
    for (const [key, stamp] of this.#context.writtenBack) {
      const text = this.#pending.get(key)
      if (text === undefined || stampOf(text) > stamp || this.#written.has(key)) continue
      this.#pending.delete(key)
      this.isChanged = true
    }
  }

  /** Returns the changed record, with this mark. */
  close(mark: Mark): TableRecord {
    const { turn, latest } = this.#record
    for (const key of this.#written) this.#pending.set(key, encodeEntry(this.#entries.get(key)!))
    return {
      turn: turn + 1,
      number: this.#number,
      version: this.#version,
      follows: latest.at(-1),
      latest: marked(latest, mark),
      requests: Array.from(this.requests(), request => this.#recordOf(request, textOfMark(mark))),
      pending: Object.fromEntries(this.#pending),
    }
  }

  #recordOf(request: Request, mark: string): RequestRecord {
    const { id, session, claims, phase, expires, lease, number, label, since } = request
    const before = this.#before.get(request)
    const isRenewed = before?.expires !== expires
    const { ttl, heartbeat } = isRenewed ? { ttl: expires - this.#now, heartbeat: mark } : before.record
    const sinceWall = before?.record.since ?? Date.now() - (this.#now - since)
    return { id, session, claims, phase, ttl, heartbeat, lease, number, label, since: sinceWall }
  }

  #entry(key: string): ValueEntry {
    const known = this.#entries.get(key)
    if (known) return known
    const text = this.#record.pending[key] ?? this.#context.entries.get(key)
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
