import type { IMap } from 'hazelcast-client'
import type { Clock } from '../../clock.js'
import type { SessionInfo } from '../../engine/contract.js'
import { answered } from './call.js'
import type { RequestRecord, TableRecord } from './table-record.js'

/**
 * How much longer than its longest lease the entry of a session lives, so that not every lease writes it, in
 * milliseconds.
 */
const MARGIN = 30_000
/** How long after the end of a session the time of its end is kept, in milliseconds. */
const RETENTION = 7 * 86_400_000

/**
 * The sessions of a place and their processes. Each session has two entries. The first names its process, and the
 * member drops it when the session was silent for longer than any of its leases. The second says until when the session
 * lives, by its own wall clock. So a box that opens later knows at once that a session is dead, if both the member's
 * clock and the box's own say so. One clock that jumps ends no session.
 */
export class Sessions {
  readonly #map: () => Promise<IMap<string, string>>
  readonly #clock: Clock
  #own: SessionInfo | undefined
  /** Until when the first entry of this session exists, unless a clock jumps, as clock time. */
  #until = -Infinity

  constructor(map: () => Promise<IMap<string, string>>, clock: Clock) {
    this.#map = map
    this.#clock = clock
  }

  /** Sets the session of this box. Its entries are written with its first lease. */
  join(own: SessionInfo): void {
    this.#own = own
  }

  /** Makes the entries of this session outlive a lease that is granted now. @throws what the client throws */
  async extendFor(lease: number): Promise<void> {
    const now = this.#clock.now()
    if (lease === 0 || !this.#own || this.#until >= now + lease) return
    const ttl = 2 * lease + MARGIN
    const { session } = this.#own
    const map = await this.#map()
    const writes = [
      map.set(entryOf(session), JSON.stringify(this.#own), ttl),
      map.set(expiryKey(session), String(Date.now() + ttl), ttl + RETENTION),
    ]
    await answered(Promise.all(writes), this.#clock)
    this.#until = now + ttl
  }

  /** Call after the cluster has lost its entries: those of this session must be written again. */
  entriesLost(): void {
    this.#until = -Infinity
  }

  /** Returns the requests in the record whose sessions are dead. @throws what the client throws */
  async deadIn(record: TableRecord): Promise<RequestRecord[]> {
    const sessions = sessionsIn(record)
    const living = await this.#read(sessions)
    const silent = sessions.filter(session => !living.has(session))
    if (silent.length === 0) return []
    const map = await this.#map()
    const ends = new Map(await answered(map.getAll(silent.map(expiryKey)), this.#clock))
    const now = Date.now()
    // If that time is unknown, the TTL counts from the first sighting of the request.
    return record.requests.filter(({ session }) => Number(ends.get(expiryKey(session)) ?? Infinity) < now)
  }

  /** Returns the known processes of the sessions in the record. @throws what the client throws */
  async of(record: TableRecord): Promise<ReadonlyMap<string, SessionInfo>> {
    const sessions = new Map<string, SessionInfo>()
    for (const [session, text] of await this.#read(sessionsIn(record))) {
      const info = infoOf(text)
      if (info) sessions.set(session, info)
    }
    if (this.#own) sessions.set(this.#own.session, this.#own)
    return sessions
  }

  /** Deletes the entries of this session. Never throws. */
  async leave(): Promise<void> {
    try {
      const { session } = this.#own!
      const map = await this.#map()
      await answered(Promise.all([map.delete(entryOf(session)), map.delete(expiryKey(session))]), this.#clock)
    } catch {
      // What remains expires.
    }
  }

  /** Reads the first entries of sessions, by session. */
  async #read(sessions: readonly string[]): Promise<ReadonlyMap<string, string>> {
    if (sessions.length === 0) return new Map()
    const map = await this.#map()
    const found = await answered(map.getAll(sessions.map(entryOf)), this.#clock)
    return new Map(found.map(([entry, text]) => [entry.slice(ENTRY.length), text]))
  }
}

const ENTRY = 'session/'

function entryOf(session: string): string {
  return `${ENTRY}${session}`
}

/** The key of the entry with the time until which a session lives. */
function expiryKey(session: string): string {
  return `life/${session}`
}

function sessionsIn({ requests }: TableRecord): string[] {
  return [...new Set(requests.map(({ session }) => session))]
}

/** Undefined if another program has written the entry. Then it only shows that the session lives. */
function infoOf(text: string): SessionInfo | undefined {
  try {
    const { session, host, pid, label } = JSON.parse(text) as SessionInfo
    return typeof session === 'string' ? { session, host, pid, label } : undefined
  } catch {
    return undefined
  }
}
