import { idOf, implies, ruleOf, type WindowDefinition } from './definition.js'
import type { GrantLog } from './grant-log.js'
import type { Spacing } from './smooth-window.js'
import type { LimitReport } from './tally.js'
import type { Window } from './window.js'

/** Asks for permits of one limiter ahead of their use, for as many callers as wait, and gives back what is not used. */
export interface Reserve {
  /** The name of the limiter. */
  readonly limiter: string
  /** What the caller takes for its limits. All of them hold together. */
  readonly windows: readonly WindowDefinition[]
  /** In the order in which they are to be served. */
  readonly units: readonly Unit[]
  /** How far ahead anything is reserved: milliseconds. From the first unit on that would be later, none is. */
  readonly horizon: number
  /** Permits that were reserved and not used, those of the latest instant first. */
  readonly returns: readonly ReturnedPermits[]
  /** For how long from now on nobody is to be given a permit: milliseconds, 0 for no pause. */
  readonly pause: number
  /** What to tell beside; undefined for nothing. */
  readonly explain: { readonly n: number; readonly ahead: number } | undefined
}

/** Permits that are wanted at one instant. */
export interface Unit {
  readonly n: number
  /** So many others are welcome, as far as the same instant has them. */
  readonly more: number
  /** How far ahead it is worth while: milliseconds. */
  readonly within: number
}

/** Permits of one instant. */
export interface ReturnedPermits {
  readonly n: number
  /** The instant, as the engine told it. */
  readonly at: number
}

/** What came of it. All times are the engine's. */
export interface Reserved {
  /** When it was decided. */
  readonly now: number
  /** By unit: how many permits there are, at which instant; 0 when none is reserved, with the instant at which it would be. */
  readonly units: readonly ReturnedPermits[]
  /** For how long from its instant each permit can be used: milliseconds. */
  readonly hold: number
  /** Until when nobody is given anything; before `now` when there is no pause. */
  readonly pausedUntil: number
  /**
   * When stricter limits are forgotten that nobody who waits goes by any more. Until then they hold, and nothing is
   * reserved for later. Infinity when there are none.
   */
  readonly fadesAt: number
  readonly explained: Explained | undefined
}

/** The limits as a caller would meet them. */
interface Explained {
  readonly ready: number
  /** Which limit is the reason to wait; undefined when none is. */
  readonly binding: number | undefined
  readonly reports: readonly LimitReport[]
}

/** All that an engine keeps of a limiter: plain data. */
export interface LimiterState {
  /** One for each limit that somebody goes by. */
  records: WindowRecord[]
  pausedUntil: number
  /** The latest instant that was reserved. */
  lastAt: number
  /** When it was last asked. */
  askedAt: number
  /**
   * What was given back while others have later instants: number and instant of each, by turns, the earliest first. It
   * counts as given until its instant is over, because at that very instant it is there for whoever asks next. One that
   * was kept by an older release has none.
   */
  free?: number[]
}

/** What is known for one limit. */
interface WindowRecord {
  /** Its definition. */
  readonly id: string
  /** When somebody last went by it. */
  seen: number
  /** Only what was reserved for a later instant is known here. */
  readonly since: number
  /** What was reserved for a later instant keeps this limit; unknown of a record that an older release has made. */
  readonly begun?: number
  readonly state: unknown
}

/** How far ahead permits can be reserved by anybody: milliseconds. */
export const FARTHEST = 10_000
/** By how much the engine's clock can seem to go back without having been set: milliseconds. */
const UNEASE = 1000
/**
 * A limit that nobody goes by any more holds for so many milliseconds beyond its window: those who wait name it again
 * sooner, so what the last of them was given has left the window by then.
 */
const LINGER = 1000
/** But no longer than so many milliseconds. Those for whom nothing could be reserved ask again well within. */
const MOST_SEEN = 10_000
/** Who waits names its limits more often: milliseconds. What is between this and the end is for all to hear of it. */
const UNNAMED = 700
/** Shorter than the time between two decisions: milliseconds. */
const LEAST_STEP = 0.0005
/** So many instants that were given back are kept for others at the most. */
const MOST_FREE = 1000
/** So many times an instant is put off because of a period that is over by then. */
const MOST_ROUNDS = 8
/** Divides milliseconds finely enough, and keeps sums of both clocks exact. */
const FRACTION = 1024

/**
 * Reserves permits. A decision about a state that is passed in and is changed by it, at the engine's time: what every
 * engine does that has a clock, whatever it keeps the state in.
 *
 * Who asks says what it takes for the limits. While some go by one definition and some by another, as during a rolling
 * deploy, all of them hold; one that nobody has named for a while is forgotten.
 * @param state of the limiter; undefined when nothing is known.
 * @param now of a clock that runs on by itself.
 * @param wall milliseconds since 1970.
 */
export function reserve(
  state: LimiterState | undefined,
  request: Reserve,
  now: number,
  wall: number,
): { state: LimiterState; reserved: Reserved; forgottenIn: number } {
  const desk = new Desk(state ?? emptyState(), request.windows, now, wall)
  for (const returned of request.returns) desk.takeBack(returned)
  desk.pause(request.pause)
  const units = desk.reserveAll(request)
  const { explain } = request
  return { ...desk.result(), reserved: desk.answer(units, explain) }
}

function emptyState(): LimiterState {
  return { records: [], pausedUntil: -Infinity, lastAt: -Infinity, askedAt: -Infinity }
}

/** A rule and what is known for it. */
interface Live {
  readonly window: Window
  readonly definition: WindowDefinition
  readonly record: WindowRecord
}

/** One decision. */
class Desk {
  readonly #state: LimiterState
  readonly #now: number
  /** From `now` to the wall clock, coarse enough that adding it and taking it off again changes nothing. */
  readonly #offset: number
  readonly #live: readonly Live[]
  /** How many of these are the caller's own. */
  readonly #own: number
  readonly #fadesAt: number
  readonly #free: number[]
  /** What was reserved for a later instant keeps all limits that there are. */
  readonly #firm: number

  constructor(state: LimiterState, windows: readonly WindowDefinition[], now: number, wall: number) {
    this.#state = state
    this.#now = now
    this.#offset = Math.floor((wall - now) * FRACTION) / FRACTION
    this.#free = state.free ??= []
    if (state.askedAt - now > UNEASE) this.#setBack(state.askedAt - now)
    state.askedAt = now
    const own = windows.map(idOf).map(id => this.#named(id))
    const others = state.records.filter(record => !own.includes(record) && this.#forgetsAt(record) >= now)
    const fading = others.filter(({ id, seen }) => {
      const { definition } = ruleOf(id)
      return now - seen > UNNAMED && !windows.some(window => implies(window, definition))
    })
    this.#fadesAt = Math.min(...fading.map(record => this.#forgetsAt(record)))
    state.records = [...own, ...others]
    this.#own = own.length
    this.#firm = Math.max(...state.records.map(({ begun = Infinity }) => begun))
    this.#live = state.records.map(record => {
      const { window, definition } = ruleOf(record.id)
      const time = this.#timeOf(window, now)
      const known = 2 * (definition.per + definition.guard) + FARTHEST + UNEASE
      if (window.forgottenAt(record.state) > time + known) window.rebase(record.state, time)
      return { window, definition, record }
    })
    while (this.#free.length > 0 && this.#free[1]! < now) this.#refund(...takeOut(this.#free, 0))
  }

  /**
   * An instant that is still to come is kept for others where some have later ones: the bound holds with it as it is,
   * and nothing could be put in its place later.
   */
  takeBack({ n, at }: ReturnedPermits): void {
    const free = this.#free
    if (at < this.#now || at <= this.#firm || this.#isNewest(at) || free.length === 2 * MOST_FREE) {
      this.#refund(n, at)
    } else {
      let place = free.length
      while (place > 0 && free[place - 1]! > at) place -= 2
      if (free[place - 1] === at) free[place - 2]! += n
      else free.splice(place, 0, n, at)
    }
    while (free.length > 0 && this.#isNewest(free.at(-1)!)) this.#refund(...takeOut(free, free.length - 2))
  }

  pause(duration: number): void {
    if (duration > 0) this.#state.pausedUntil = Math.max(this.#state.pausedUntil, this.#now + duration)
  }

  reserveAll({ units, horizon }: Reserve): ReturnedPermits[] {
    let beyond: number | undefined
    let vain: Unit | undefined
    let vainAt = Infinity
    return units.map(unit => {
      if (unit === vain) return { n: 0, at: vainAt }
      const { n, more, within } = unit
      const place = beyond === undefined ? this.#placeOfFree(n) : -1
      const at = beyond ?? (place < 0 ? this.#earliest(n, 0) : this.#free[place + 1]!)
      if (at - this.#now > horizon || at > this.#fadesAt) beyond = Math.min(at, this.#fadesAt)
      if (beyond !== undefined || at - this.#now > within) {
        vain = unit
        vainAt = beyond ?? at
        return { n: 0, at: vainAt }
      }
      vain = undefined
      if (place >= 0) return { n: this.#takeFree(place, n + more), at }
      const all = n + (more > 0 ? this.#room(n, more, at) : 0)
      for (const { window, record } of this.#live) {
        window.take(record.state, all, this.#timeOf(window, at), 0, this.#timeOf(window, this.#now))
      }
      this.#state.lastAt = Math.max(this.#state.lastAt, at)
      return { n: all, at }
    })
  }

  answer(units: readonly ReturnedPermits[], explain: Reserve['explain']): Reserved {
    return {
      now: this.#now,
      units,
      hold: Math.min(...this.#live.map(({ definition }) => definition.hold)),
      pausedUntil: this.#state.pausedUntil,
      fadesAt: this.#fadesAt,
      explained: explain && this.#explained(explain),
    }
  }

  result(): { state: LimiterState; forgottenIn: number } {
    const now = this.#now
    const known = this.#live.map(({ window, record }) =>
      Math.max(window.forgottenAt(record.state) - this.#timeOf(window, now), 0),
    )
    return { state: this.#state, forgottenIn: Math.max(...known, this.#state.pausedUntil - now) }
  }

  #refund(n: number, at: number): void {
    for (const { window, record } of this.#live) {
      if (at > record.since) window.refund(record.state, n, this.#timeOf(window, at))
    }
  }

  #isNewest(at: number): boolean {
    return this.#live.every(({ window, record }) => window.isNewest(record.state, this.#timeOf(window, at)))
  }

  /** Where the earliest stands that was given back and has as many permits; -1 when none has. */
  #placeOfFree(n: number): number {
    const free = this.#free
    const from = Math.max(this.#state.pausedUntil, this.#firm)
    for (let place = 0; place < free.length; place += 2) {
      if (free[place]! >= n && free[place + 1]! > from) return place
    }
    return -1
  }

  /** Takes up to so many of what was given back. */
  #takeFree(place: number, most: number): number {
    const free = this.#free
    if (free[place]! <= most) return takeOut(free, place)[0]
    free[place]! -= most
    return most
  }

  /** The time `at` on the clock that a rule goes by. */
  #timeOf(window: Window, at: number): number {
    return window.wall ? at + this.#offset : at
  }

  /** The record of a limit that is named just now. */
  #named(id: string): WindowRecord {
    const { records, lastAt } = this.#state
    const known = records.find(record => record.id === id)
    if (known) {
      known.seen = this.#now
      return known
    }
    const source = sourceFor(id, records)
    const begun = Math.max(lastAt, this.#now - LEAST_STEP)
    // What was reserved before is not counted here, so it can't be given back here either.
    return { id, seen: this.#now, since: source ? source.since : begun, begun, state: seeded(id, source) }
  }

  /** Until when a limit holds if nobody names it again. */
  #forgetsAt({ id, seen }: WindowRecord): number {
    const { per, guard } = ruleOf(id).definition
    return seen + Math.min(per + guard + LINGER, MOST_SEEN)
  }

  /** The clock was set back: what was to happen later is to happen as much later as it was. */
  #setBack(by: number): void {
    const state = this.#state
    state.pausedUntil -= by
    // Nobody knows which of these instants are over.
    this.#free.length = 0
    for (const record of state.records) record.seen = Math.min(record.seen, this.#now)
  }

  /** From when on so many permits can be had, unless others come before. */
  #earliest(n: number, ahead: number): number {
    const from = Math.max(this.#now, this.#state.pausedUntil)
    let at = from
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const next = this.#readyFrom(at, n, ahead)
      if (next === at) return this.#live.some(({ window }) => window.limit < n) ? Infinity : at
      at = next
    }
    return Infinity
  }

  #readyFrom(from: number, n: number, ahead: number): number {
    let at = from
    for (const { window, record } of this.#live) {
      const time = this.#timeOf(window, from)
      const ready = window.readyAt(record.state, time, n, ahead)
      // Changing clocks and back may round.
      if (ready > time) at = Math.max(at, window.wall ? ready - this.#offset : ready)
    }
    return at
  }

  /** How many permits more there are at the same instant. */
  #room(n: number, more: number, at: number): number {
    let room = more
    for (const { window, record } of this.#live) {
      const used = window.used(record.state, this.#timeOf(window, at))
      room = window.kind === 'smooth' ? 0 : Math.min(room, window.limit - used - n)
    }
    const allowed = this.#live.every(({ window, record }) =>
      window.allows(record.state, this.#timeOf(window, at), n + room, 0),
    )
    return allowed ? room : 0
  }

  #explained({ n, ahead }: { readonly n: number; readonly ahead: number }): Explained {
    const now = this.#now
    const own = this.#live.slice(0, this.#own)
    let longest = 0
    let binding
    for (const [index, { window, record }] of own.entries()) {
      const time = this.#timeOf(window, now)
      const wait = window.readyAt(record.state, time, n, ahead) - time
      if (wait > longest) [longest, binding] = [wait, index]
    }
    const reports = own.map(({ window, definition: { limit, per, kind }, record: { state } }) => {
      const time = this.#timeOf(window, now)
      const remaining = Math.max(limit - window.used(state, time), 0)
      return { limit, per, window: kind, remaining, resetIn: window.returnsAt(state, time) - time }
    })
    return { ready: this.#earliestWithFree(n, ahead), binding, reports }
  }

  /** As `#earliest`, if all who come before take what was given back, too. */
  #earliestWithFree(n: number, ahead: number): number {
    const free = this.#free
    let left = ahead
    for (let place = this.#placeOfFree(1); place >= 0 && place < free.length; place += 2) {
      if (free[place]! >= left + n) return free[place + 1]!
      left = Math.max(left - free[place]!, 0)
    }
    return this.#earliest(n, left)
  }
}

/** Takes number and instant out of a list of both. */
function takeOut(list: number[], place: number): [n: number, at: number] {
  return list.splice(place, 2) as [number, number]
}

/** From whose record that of a new limit can begin: what was given under another counts under this one, too. */
function sourceFor(id: string, records: readonly WindowRecord[]): WindowRecord | undefined {
  const { kind, per, timeZone } = ruleOf(id).definition
  let source: WindowRecord | undefined
  let longest = 0
  for (const record of records) {
    const other = ruleOf(record.id).definition
    const same =
      kind === 'calendar'
        ? other.kind === kind && other.per === per && other.timeZone === timeZone
        : other.kind !== 'calendar'
    const memory = other.per + other.guard
    if (same && memory > longest) [source, longest] = [record, memory]
  }
  return source
}

/** What a new limit knows at first. */
function seeded(id: string, source: WindowRecord | undefined): unknown {
  const window = ruleOf(id).window
  if (!source) return window.empty()
  const { kind, hold } = ruleOf(id).definition
  if (kind === 'calendar') return structuredClone(source.state)
  const other = ruleOf(source.id).definition
  const log = other.kind === 'smooth' ? (source.state as Spacing).log : (source.state as GrantLog)
  // What was given can still be used for as long as it was told then.
  const own = shifted(log, Math.max(other.hold - hold, 0))
  return kind === 'smooth' ? { openAt: -Infinity, log: own } : own
}

function shifted(log: GrantLog, by: number): GrantLog {
  return {
    ...log,
    entries: log.entries.map((value, index) => (index % 2 === 0 ? value + by : value)),
    droppedAt: log.droppedAt + by,
    begunAt: log.begunAt + by,
    lastAt: log.lastAt + by,
  }
}
