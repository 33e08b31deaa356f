import type { IMap } from 'hazelcast-client'
import type { Clock, SessionInfo } from 'signalbox/engine'
import { answered } from './call.js'

/**
 * Time for which the entry of a session lives in addition to twice its longest lease, in milliseconds. So not every
 * lease writes it.
 */
const MARGIN = 30_000
/** Minimum time between two look-ups of a session that was found to be dead, in milliseconds. */
const RECHECK_AFTER = 1000
/** Maximum number of sessions whose look-ups are cached. */
const MAX_LOOKED_UP = 4096
/** The time at which a session ended is kept for this long, in milliseconds. */
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
  /** Look-ups of sessions of other boxes: their clock times and results. */
  readonly #lookedUp = new Map<string, { readonly at: number; readonly isDead: boolean }>()
  readonly #looking = new Set<string>()
  /** The longest lease of this session, in milliseconds. */
  #longest = 0
  /** The clock time until which the first entry of this session exists, unless a clock jumps. */
  #until = -Infinity

  constructor(map: () => Promise<IMap<string, string>>, clock: Clock) {
    this.#map = map
    this.#clock = clock
  }

  /** Sets the session of this box. Its entries are written with its first lease. */
  join(own: SessionInfo): void {
    this.#own = own
  }

  /** Whether the entries of this session outlive a lease that is granted now. {@link keep} keeps them for it, too. */
  outlives(lease: number): boolean {
    this.#longest = Math.max(this.#longest, lease)
    return lease === 0 || this.#until >= this.#clock.now() + lease
  }

  /** Makes the entries of this session outlive a lease that is granted now. @throws errors of the client */
  async extendFor(lease: number): Promise<void> {
    if (this.outlives(lease) || !this.#own) return
    const now = this.#clock.now()
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

  /** Makes the entries of this session outlive its requests that wait. @throws errors of the client */
  keep(): Promise<void> {
    return this.extendFor(this.#longest)
  }

  /** Call after the cluster has lost its entries: those of this session must be written again. */
  entriesLost(): void {
    this.#until = -Infinity
  }

  /** Whether the session was found to have died. */
  isDead(session: string): boolean {
    return this.#lookedUp.get(session)?.isDead ?? false
  }

  /**
   * The clock time by which the session had died; -Infinity if it may live. A box that was stopped or idle for long
   * writes its entries again before its next lease, so its later requests are not dead.
   */
  diedBefore(session: string): number {
    return this.isDead(session) ? this.#lookedUp.get(session)!.at : -Infinity
  }

  /** Finds out whether sessions are dead that were not looked up lately. @throws errors of the client */
  async lookUp(sessions: readonly string[]): Promise<void> {
    const now = this.#clock.now()
    const unknown = sessions.filter(session => {
      const { at, isDead } = this.#lookedUp.get(session) ?? { at: -Infinity, isDead: false }
      // The entries of a live session exist for at least the second time.
      const isKnown = now - at < (isDead ? RECHECK_AFTER : MARGIN)
      return session !== this.#own?.session && !isKnown && !this.#looking.has(session)
    })
    await this.lookUpNow(unknown)
  }

  /** Finds out whether sessions are dead. @throws errors of the client */
  async lookUpNow(sessions: readonly string[]): Promise<void> {
    if (sessions.length === 0) return
    const at = this.#clock.now()
    for (const session of sessions) this.#looking.add(session)
    try {
      const dead = new Set(await this.#deadOf(sessions))
      if (this.#lookedUp.size > MAX_LOOKED_UP) this.#lookedUp.clear()
      for (const session of sessions) this.#lookedUp.set(session, { at, isDead: dead.has(session) })
    } finally {
      for (const session of sessions) this.#looking.delete(session)
    }
  }

  /** Returns those of these sessions that are dead. @throws errors of the client */
  async #deadOf(sessions: readonly string[]): Promise<string[]> {
    const living = await this.#read(sessions)
    const silent = sessions.filter(session => !living.has(session))
    if (silent.length === 0) return []
    const map = await this.#map()
    const ends = new Map(await answered(map.getAll(silent.map(expiryKey)), this.#clock))
    const now = Date.now()
    // If that time is unknown, the TTL counts from the first sighting of the request.
    return silent.filter(session => Number(ends.get(expiryKey(session)) ?? Infinity) < now)
  }

  /**
   * Whether this box must clean up now.
   * @param interval time for which no other box does, in milliseconds @throws errors of the client
   */
  async isSweeper(interval: number): Promise<boolean> {
    const map = await this.#map()
    return (await answered(map.putIfAbsent(SWEPT_KEY, this.#own!.session, interval), this.#clock)) === null
  }

  /** Leaves a mark, so that other boxes look for free entries after this one has ended. Never throws. */
  async leaveFree(): Promise<void> {
    try {
      const key = `${FREE}${Date.now() - (Date.now() % FREE_PERIOD)}`
      await answered((await this.#map()).set(key, ''), this.#clock)
    } catch {
      // They are found when the next box leaves some, or dies.
    }
  }

  /**
   * Returns the other sessions that died at least a minute ago and were not forgotten, and the marks of boxes that have
   * left free entries at least this many milliseconds ago. @throws errors of the client
   */
  async left(
    time: number,
  ): Promise<{ readonly sessions: readonly string[]; readonly marks: readonly string[] }> {
    const map = await this.#map()
    const keys = [...(await answered(map.keySet(), this.#clock))]
    const living = new Set(keys.filter(key => key.startsWith(ENTRY)).map(key => key.slice(ENTRY.length)))
    const silent = keys
      .filter(key => key.startsWith(LIFE))
      .map(key => key.slice(LIFE.length))
      .filter(session => !living.has(session) && session !== this.#own!.session)
    const ends = new Map(await answered(map.getAll(silent.map(expiryKey)), this.#clock))
    const latest = Date.now() - SWEPT_AFTER
    const sessions = silent.filter(session => Number(ends.get(expiryKey(session)) ?? Infinity) < latest)
    const marks = keys.filter(
      key =>
        key.startsWith(FREE) && Math.abs(Date.now() - Number(key.slice(FREE.length))) > FREE_PERIOD + time,
    )
    return { sessions, marks }
  }

  /** Removes marks, after the search for the entries to which they refer. @throws errors of the client */
  async swept(marks: readonly string[]): Promise<void> {
    const map = await this.#map()
    await answered(Promise.all(marks.map(mark => map.delete(mark))), this.#clock)
  }

  /** Forgets sessions that have left nothing. @throws errors of the client */
  async forget(sessions: readonly string[]): Promise<void> {
    const map = await this.#map()
    await answered(Promise.all(sessions.map(session => map.delete(expiryKey(session)))), this.#clock)
  }

  /** Returns the known processes of sessions. @throws errors of the client */
  async of(sessions: readonly string[]): Promise<ReadonlyMap<string, SessionInfo>> {
    const known = new Map<string, SessionInfo>()
    for (const [session, text] of await this.#read(sessions)) {
      const info = infoOf(text)
      if (info) known.set(session, info)
    }
    if (this.#own) known.set(this.#own.session, this.#own)
    return known
  }

  /** Deletes the entries of this session. Never throws. */
  async leave(): Promise<void> {
    try {
      const { session } = this.#own!
      const map = await this.#map()
      await answered(Promise.all([map.delete(entryOf(session)), map.delete(expiryKey(session))]), this.#clock)
    } catch {
      // The rest expires.
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
const LIFE = 'life/'
/** The key of the entry that says that a box cleans up. */
const SWEPT_KEY = 'swept'
/** The keys of the marks that boxes have left free entries: one for all boxes that leave some in the same minute. */
const FREE = 'free/'
const FREE_PERIOD = 60_000
/** A session is remembered for at least this long after its end, in milliseconds. */
const SWEPT_AFTER = 60_000

function entryOf(session: string): string {
  return `${ENTRY}${session}`
}

/** The key of the entry with the time until which a session lives. */
function expiryKey(session: string): string {
  return `${LIFE}${session}`
}

/** Returns undefined if another program has written the entry. Then the entry only shows that the session lives. */
function infoOf(text: string): SessionInfo | undefined {
  try {
    const { session, host, pid, label } = JSON.parse(text) as SessionInfo
    return typeof session === 'string' ? { session, host, pid, label } : undefined
  } catch {
    return undefined
  }
}
