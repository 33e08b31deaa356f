import type { IMap } from 'hazelcast-client'
import type { Clock } from '../../clock.js'
import type { SessionInfo } from '../../engine/contract.js'
import { answered } from './call.js'
import type { RequestRecord, TableRecord } from './table-record.js'

/** The entry of a session outlives its longest lease by so much, so that it need not be written for each: milliseconds. */
const SPARE = 30_000
/** How long the time until which a session lives stays known after that: milliseconds. */
const KEPT = 7 * 86_400_000

/**
 * Who the sessions belong to: an entry each, which the member that has it drops when its session was silent for longer than
 * any of its leases. A second entry has the time until which the session lives, by its own wall clock. A box that comes later
 * knows at once that a silent session is dead, when the member's clock and its own both say so: a clock that jumps alone
 * ends no session.
 */
export class Members {
  readonly #map: () => Promise<IMap<string, string>>
  readonly #clock: Clock
  #member: SessionInfo | undefined
  /** Until when our own first entry is there, unless a clock jumps: clock time. */
  #until = -Infinity
  readonly #known = new Map<string, SessionInfo>()

  constructor(map: () => Promise<IMap<string, string>>, clock: Clock) {
    this.#map = map
    this.#clock = clock
  }

  /** The entries are written with the first lease. */
  join(member: SessionInfo): void {
    this.#member = member
    this.#known.set(member.session, member)
  }

  /** Sees to it that the entries are there for as long as a lease that is given now. @throws what the client throws */
  async promise(lease: number): Promise<void> {
    const now = this.#clock.now()
    if (lease === 0 || !this.#member || this.#until >= now + lease) return
    const life = 2 * lease + SPARE
    const { session } = this.#member
    const map = await this.#map()
    const writes = [
      map.set(entryOf(session), JSON.stringify(this.#member), life),
      map.set(lifeOf(session), String(Date.now() + life), life + KEPT),
    ]
    await answered(Promise.all(writes), this.#clock)
    this.#until = now + life
  }

  /** The cluster has lost what it had, so the entries have to be written again. */
  isLost(): void {
    this.#until = -Infinity
  }

  /** The requests of the record whose sessions are dead. @throws what the client throws */
  async deadIn(record: TableRecord): Promise<RequestRecord[]> {
    const sessions = new Set(record.requests.map(({ session }) => session))
    const living = await this.#read(sessions)
    const silent = [...sessions].filter(session => !living.has(session))
    if (silent.length === 0) return []
    const map = await this.#map()
    const lives = new Map(await answered(map.getAll(silent.map(lifeOf)), this.#clock))
    const now = Date.now()
    // Where that time is not known, the life is counted from the first sight.
    return record.requests.filter(({ session }) => Number(lives.get(lifeOf(session)) ?? Infinity) < now)
  }

  /** Who the sessions in the record belong to. @throws what the client throws */
  async of(record: TableRecord): Promise<ReadonlyMap<string, SessionInfo>> {
    const sessions = new Set(record.requests.map(({ session }) => session))
    for (const session of this.#known.keys())
      if (!sessions.has(session) && session !== this.#member?.session) this.#known.delete(session)
    await this.#read(new Set([...sessions].filter(session => !this.#known.has(session))))
    return this.#known
  }

  /** Drops the entries. Never throws: what is left goes by itself. */
  async leave(): Promise<void> {
    try {
      const { session } = this.#member!
      const map = await this.#map()
      await answered(Promise.all([map.delete(entryOf(session)), map.delete(lifeOf(session))]), this.#clock)
    } catch {
      // As said.
    }
  }

  async #read(sessions: ReadonlySet<string>): Promise<Set<string>> {
    if (sessions.size === 0) return new Set()
    const map = await this.#map()
    const found = await answered(map.getAll([...sessions].map(entryOf)), this.#clock)
    for (const [, text] of found) {
      const member = memberOf(text)
      if (member) this.#known.set(member.session, member)
    }
    return new Set(found.map(([entry]) => entry.slice(ENTRY.length)))
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

/** Undefined when another program has written to it: then all that is known is that the session lives. */
function memberOf(text: string): SessionInfo | undefined {
  try {
    const { session, host, pid, label } = JSON.parse(text) as SessionInfo
    return typeof session === 'string' ? { session, host, pid, label } : undefined
  } catch {
    return undefined
  }
}
