import type { IMap } from 'hazelcast-client'
import type { Clock } from '../../clock.js'
import type { SessionInfo } from '../../engine/contract.js'
import { answered } from './call.js'
import type { RequestRecord, TableRecord } from './table-record.js'

/** The entry of a session outlives its longest lease by so much, so that it is not written for each: milliseconds. */
const SPARE = 30_000
/** For so long after a session's life the time of its end stays known: milliseconds. */
const KEPT = 7 * 86_400_000

/**
 * The sessions of a place and their processes. Each session has two entries. The first tells its process, and the
 * member drops it when the session was silent for longer than any of its leases. The second tells until when the
 * session lives, by its own wall clock. So a box that comes later knows at once that a session is dead, when the
 * clock of the member and its own both say so. One clock that jumps ends no session.
 */
export class Sessions {
  readonly #map: () => Promise<IMap<string, string>>
  readonly #clock: Clock
  #own: SessionInfo | undefined
  /** Until when the first entry of this session is there, unless a clock jumps: clock time. */
  #until = -Infinity

  constructor(map: () => Promise<IMap<string, string>>, clock: Clock) {
    this.#map = map
    this.#clock = clock
  }

  /** Takes note of the session of this box. Its entries are written with its first lease. */
  join(own: SessionInfo): void {
    this.#own = own
  }

  /** Makes the entries of this session outlive a lease that is given now. @throws what the client throws */
  async outlive(lease: number): Promise<void> {
    const now = this.#clock.now()
    if (lease === 0 || !this.#own || this.#until >= now + lease) return
    const life = 2 * lease + SPARE
    const { session } = this.#own
    const map = await this.#map()
    const writes = [
      map.set(entryOf(session), JSON.stringify(this.#own), life),
      map.set(lifeOf(session), String(Date.now() + life), life + KEPT),
    ]
    await answered(Promise.all(writes), this.#clock)
    this.#until = now + life
  }

  /** The cluster has lost its entries, so those of this session have to be written again. */
  entriesLost(): void {
    this.#until = -Infinity
  }

  /** The requests of the record whose sessions are dead. @throws what the client throws */
  async deadIn(record: TableRecord): Promise<RequestRecord[]> {
    const sessions = sessionsIn(record)
    const living = await this.#read(sessions)
    const silent = sessions.filter(session => !living.has(session))
    if (silent.length === 0) return []
    const map = await this.#map()
    const lives = new Map(await answered(map.getAll(silent.map(lifeOf)), this.#clock))
    const now = Date.now()
    // Where that time is not known, the life counts from the first sight of the request.
    return record.requests.filter(({ session }) => Number(lives.get(lifeOf(session)) ?? Infinity) < now)
  }

  /** The processes of the sessions in the record, as far as they are known. @throws what the client throws */
  async of(record: TableRecord): Promise<ReadonlyMap<string, SessionInfo>> {
    const sessions = new Map<string, SessionInfo>()
    for (const [session, text] of await this.#read(sessionsIn(record))) {
      const info = infoOf(text)
      if (info) sessions.set(session, info)
    }
    if (this.#own) sessions.set(this.#own.session, this.#own)
    return sessions
  }

  /** Drops the entries of this session. Never throws. */
  async leave(): Promise<void> {
    try {
      const { session } = this.#own!
      const map = await this.#map()
      await answered(Promise.all([map.delete(entryOf(session)), map.delete(lifeOf(session))]), this.#clock)
    } catch {
      // What is left expires.
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
function lifeOf(session: string): string {
  return `life/${session}`
}

function sessionsIn({ requests }: TableRecord): string[] {
  return [...new Set(requests.map(({ session }) => session))]
}

/** Undefined when another program has written the entry. Then only that the session lives is known. */
function infoOf(text: string): SessionInfo | undefined {
  try {
    const { session, host, pid, label } = JSON.parse(text) as SessionInfo
    return typeof session === 'string' ? { session, host, pid, label } : undefined
  } catch {
    return undefined
  }
}
