import type { Clock } from '../../base/clock.js'
import type { LimiterState } from '../limits/reserve-permits.js'
import { TransientMap } from '../../base/transient-map.js'
import type { List, RecordedId, SessionInfo, Versioned } from '../contract.js'
import type { Entry, Request } from '../table-state.js'
import { firstKeys } from './first-keys.js'
import { MemoryLimits } from './memory-limits.js'
import type { EngineState } from './state-engine.js'

/** Minimum number of IDs recorded between two sweeps. */
const MIN_RECORDS = 4096
const ABSENT: Versioned = { value: undefined, version: 0 }

/** The whole content of a {@link MemoryState}, as JSON. */
interface Snapshot {
  readonly number: number
  readonly version: number
  /** In the order of their places. */
  readonly requests: readonly Request[]
  readonly sessions: readonly SessionInfo[]
  readonly seen: readonly (readonly [session: string, at: number])[]
  readonly watchers: readonly (readonly [key: string, sessions: readonly string[]])[]
  readonly values: readonly (readonly [key: string, value: string | undefined, version: number])[]
  readonly ids: readonly (readonly [key: string, id: string, until: number])[]
  readonly limiters: readonly (readonly [name: string, state: LimiterState, until: number])[]
}

/** The whole state of an engine in variables. {@link save} and {@link load} convert it to text and back. */
export class MemoryState implements EngineState {
  /** Set for an engine whose callers bind grants to their transactions. */
  isBound?: (key: string) => boolean
  #queues = new TransientMap<string, Entry[]>()
  #requests = new TransientMap<string, Request>()
  #members = new Map<string, SessionInfo>()
  /** When the last sign of a session came. */
  #seen = new Map<string, number>()
  /** The sessions that watch a store key, by key. */
  #watchers = new Map<string, Set<string>>()
  #values = new Map<string, Versioned>()
  /** Until when each ID is kept, by key, then by ID. */
  #ids = new Map<string, Map<string, number>>()
  readonly #limits: MemoryLimits
  #recordsToSweep = MIN_RECORDS
  readonly #clock: Clock
  #number: number
  #version: number

  /**
   * @param start the first number. With microseconds of the wall clock, tokens increase even across restarts of the
   * process, and the ten bits for turns still fit into a signed 64-bit integer.
   */
  constructor(start: number, clock: Clock) {
    this.#clock = clock
    this.#limits = new MemoryLimits(clock)
    this.#number = start
    this.#version = start
  }

  /** All requests in the order of their places. */
  requests(): Iterable<Request> {
    return this.#requests.values()
  }

  queue(key: string): readonly Entry[] | undefined {
    return this.#queues.get(key)
  }

  lastAhead(request: Request, key: string, count: number): Request[] {
    const queue = this.#queues.get(key) ?? []
    const place = queue.findLastIndex(entry => entry.request === request)
    return queue.slice(Math.max(place - count, 0), place).map(entry => entry.request)
  }

  request(id: string): Request | undefined {
    return this.#requests.get(id)
  }

  append(request: Request): void {
    this.#requests.set(request.id, request)
    for (const claim of request.claims) {
      const queue = this.#queues.get(claim.key)
      if (queue) queue.push({ request, claim })
      else this.#queues.set(claim.key, [{ request, claim }])
    }
  }

  prepend(request: Request): void {
    const others = [...this.#requests.values()]
    this.#requests = new TransientMap()
    for (const each of [request, ...others]) this.#requests.set(each.id, each)
    for (const claim of request.claims)
      this.#queues.set(claim.key, [{ request, claim }, ...(this.#queues.get(claim.key) ?? [])])
  }

  remove(request: Request): void {
    this.#requests.delete(request.id)
    for (const { key } of request.claims) {
      const queue = this.#queues.get(key)!
      const place = queue.findIndex(entry => entry.request === request)
      if (queue.length === 1) this.#queues.delete(key)
      else queue.splice(place, 1)
    }
  }

  changed(_request: Request): void {
    // The requests that it returns are the state itself.
  }

  nextNumber(): number {
    // mutant: repeat-numbers
    return ++this.#number
  }

  requestsOf(session: string): Request[] {
    return [...this.#requests.values()].filter(request => request.session === session)
  }

  keys(prefix: string): string[] {
    return [...this.#queues.keys()].filter(key => key.startsWith(prefix))
  }

  member(session: string): SessionInfo | undefined {
    return this.#members.get(session)
  }

  join(member: SessionInfo): void {
    this.#members.set(member.session, member)
  }

  leave(session: string): void {
    this.#members.delete(session)
    this.#seen.delete(session)
    for (const key of [...this.#watchers.keys()]) this.unwatch(session, key)
  }

  seen(session: string): number {
    return this.#seen.get(session) ?? -Infinity
  }

  see(session: string, now: number): void {
    this.#seen.set(session, now)
  }

  watch(session: string, key: string): void {
    const sessions = this.#watchers.get(key)
    if (sessions) sessions.add(session)
    else this.#watchers.set(key, new Set([session]))
  }

  unwatch(session: string, key: string): void {
    const sessions = this.#watchers.get(key)
    if (sessions?.delete(session) && sessions.size === 0) this.#watchers.delete(key)
  }

  watchers(keys: readonly string[]): { session: string; key: string }[] {
    if (this.#watchers.size === 0) return []
    return keys.flatMap(key => [...(this.#watchers.get(key) ?? [])].map(session => ({ session, key })))
  }

  values(keys: readonly string[]): Versioned[] {
    return keys.map(key => this.#values.get(key) ?? ABSENT)
  }

  list(list: List): string[] {
    return firstKeys(this.#values.keys(), list)
  }

  put(key: string, value: string | undefined, version: number): void {
    if (value === undefined) this.#values.delete(key)
    else this.#values.set(key, { value, version })
  }

  nextVersion(): number {
    return ++this.#version
  }

  recorded(ids: readonly RecordedId[]): boolean[] {
    return ids.map(({ key, id }) => this.#ids.get(key)?.has(id) ?? false)
  }

  record(key: string, id: string, retention: number): void {
    if (--this.#recordsToSweep <= 0) this.#sweepIds()
    this.#keepId(key, id, this.#clock.now() + retention)
  }

  limiter(name: string): LimiterState | undefined {
    return this.#limits.get(name)
  }

  limiterNames(): string[] {
    return this.#limits.names()
  }

  keepLimiter(name: string, state: LimiterState, forgottenIn: number): void {
    this.#limits.set(name, state, this.#clock.now() + forgottenIn)
  }

  /** Returns the state as JSON text. Its times are clock times, so only processes with the same clock can load it. */
  save(): string {
    const snapshot: Snapshot = {
      number: this.#number,
      version: this.#version,
      requests: [...this.#requests.values()],
      sessions: [...this.#members.values()],
      seen: [...this.#seen],
      watchers: [...this.#watchers].map(([key, sessions]) => [key, [...sessions]]),
      values: [...this.#values].map(([key, { value, version }]) => [key, value, version]),
      ids: [...this.#ids].flatMap(([key, ids]) => [...ids].map(([id, until]) => [key, id, until] as const)),
      limiters: [...this.#limits.entries()],
    }
    return JSON.stringify(snapshot)
  }

  /** Replaces the state by one that {@link save} has written. */
  load(saved: string): void {
    const snapshot = JSON.parse(saved, withInfinity) as Snapshot
    this.#number = snapshot.number
    this.#version = snapshot.version
    this.#queues = new TransientMap()
    this.#requests = new TransientMap()
    for (const request of snapshot.requests) this.append(request)
    this.#members = new Map(snapshot.sessions.map(info => [info.session, info]))
    this.#seen = new Map(snapshot.seen)
    this.#watchers = new Map(snapshot.watchers.map(([key, sessions]) => [key, new Set(sessions)]))
    this.#values = new Map(snapshot.values.map(([key, value, version]) => [key, { value, version }]))
    this.#ids = new Map()
    for (const [key, id, until] of snapshot.ids) this.#keepId(key, id, until)
    this.#limits.clear()
    for (const [name, state, until] of snapshot.limiters) this.#limits.set(name, state, until)
  }

  #keepId(key: string, id: string, until: number): void {
    const ids = this.#ids.get(key)
    if (ids) ids.set(id, until)
    else this.#ids.set(key, new Map([[id, until]]))
  }

  /** Deletes expired IDs. */
  #sweepIds(): void {
    const now = this.#clock.now()
    let kept = 0
    for (const [key, ids] of this.#ids) {
      for (const [id, until] of ids) if (until <= now) ids.delete(id)
      if (ids.size === 0) this.#ids.delete(key)
      kept += ids.size
    }
    // The next sweep is due after as many new IDs as exist now, so that it checks one or two IDs for each new one.
    this.#recordsToSweep = Math.max(MIN_RECORDS, kept)
  }
}

/** Converts null back to -Infinity, the only number here that is not finite: JSON has no number for it. */
export function withInfinity(_: string, value: unknown): unknown {
  return value === null ? -Infinity : value
}
