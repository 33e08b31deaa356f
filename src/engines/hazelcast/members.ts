import type { IMap } from 'hazelcast-client'
import type { Clock } from '../../clock.js'
import type { Member } from '../engine.js'
import { answered } from './call.js'
import type { RequestRecord, TableRecord } from './table-record.js'

/** The entry of a session outlives its longest lease by so much, so that it need not be written for each: milliseconds. */
const SPARE = 30_000

/**
 * Who the sessions belong to: an entry each, which the member that has it drops when its session was silent for longer than
 * any of its leases. So whoever comes later knows at once that what such a session left behind is nobody's.
 */
export class Members {
  readonly #map: () => Promise<IMap<string, string>>
  readonly #clock: Clock
  #member: Member | undefined
  /** Until when our own entry is there for certain: clock time. */
  #until = -Infinity
  readonly #known = new Map<string, Member>()

  constructor(map: () => Promise<IMap<string, string>>, clock: Clock) {
    this.#map = map
    this.#clock = clock
  }

  /** The entry is written with the first lease. */
  join(member: Member): void {
    this.#member = member
    this.#known.set(member.session, member)
  }

  /** Sees to it that the entry is there for as long as a lease that is given now. @throws what the client throws */
  async promise(lease: number): Promise<void> {
    const now = this.#clock.now()
    if (lease === 0 || !this.#member || this.#until >= now + lease) return
    const life = 2 * lease + SPARE
    const map = await this.#map()
    await answered(map.set(entryOf(this.#member.session), JSON.stringify(this.#member), life), this.#clock)
    this.#until = now + life
  }

  /** The cluster has lost what it had, so the entry has to be written again. */
  isLost(): void {
    this.#until = -Infinity
  }

  /** The requests of the record whose sessions are dead. @throws what the client throws */
  async deadIn(record: TableRecord): Promise<RequestRecord[]> {
    const sessions = new Set(record.requests.map(({ session }) => session))
    const living = await this.#read(sessions)
    return record.requests.filter(({ session }) => !living.has(session))
  }

  /** Who the sessions in the record belong to. @throws what the client throws */
  async of(record: TableRecord): Promise<ReadonlyMap<string, Member>> {
    const sessions = new Set(record.requests.map(({ session }) => session))
    for (const session of this.#known.keys())
      if (!sessions.has(session) && session !== this.#member?.session) this.#known.delete(session)
    await this.#read(new Set([...sessions].filter(session => !this.#known.has(session))))
    return this.#known
  }

  /** Drops the entry. Never throws: what is left goes by itself. */
  async leave(): Promise<void> {
    try {
      const map = await this.#map()
      await answered(map.delete(entryOf(this.#member!.session)), this.#clock)
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

/** Undefined when another program has written to it: then all that is known is that the session lives. */
function memberOf(text: string): Member | undefined {
  try {
    const { session, host, pid, label } = JSON.parse(text) as Member
    return typeof session === 'string' ? { session, host, pid, label } : undefined
  } catch {
    return undefined
  }
}
