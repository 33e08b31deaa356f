import { idOf, implies, ruleOf, type WindowDefinition } from './definition.js'
import type { GrantLog } from './grant-log.js'
import type { Spacing } from './smooth-window.js'
import type { LimitReport, Window } from './window.js'

/** Asks for permits of one limiter ahead of their use, for all waiters of a process, and gives back unused ones. */
export interface ReservePermits {
  /** The name of the limiter. */
  readonly limiter: string
  /** The session of the process that asks. */
  readonly session: string
  /** The limits that the process uses. All of them hold together. None for an operator, who asks for no permits. */
  readonly windows: readonly WindowDefinition[]
  /** In the order in which they are to be served. */
  readonly units: readonly Unit[]
  /**
   * How far ahead anything is reserved, in milliseconds. Nothing is reserved from the first unit on that would be
   * later.
   */
  readonly horizon: number
  /**
   * For how long each permit must be usable, in milliseconds. An engine makes it at least as long as the limits say.
   */
  readonly hold: number
  /** Permits that were reserved and not used, those of the latest instant first. */
  readonly returns: readonly ReturnedPermits[]
  /**
   * For how long from now on no process gets a permit, in milliseconds. 0 ends a pause; undefined leaves it as it is.
   */
  readonly pause: number | undefined
  /** What to explain besides; undefined for nothing. */
  readonly explain: { readonly n: number; readonly ahead: number } | undefined
}

/** Permits that are wanted at one instant. */
export interface Unit {
  readonly n: number
  /** So many further permits are welcome, as far as the same instant has them. */
  readonly more: number
  /** How far ahead an instant is of use, in milliseconds. */
  readonly within: number
}

/** Permits of one instant. */
export interface InstantPermits {
  readonly n: number
  /** The instant, as the engine reported it. */
  readonly at: number
}

/** Permits that were reserved and not used. */
export interface ReturnedPermits extends InstantPermits {
  /** From when on they could be used: the instant, or earlier. */
  readonly from: number
}

/** The answer. All times are the engine's. */
export interface Reserved {
  /** When it was decided. */
  readonly now: number
  /**
   * By unit: how many permits there are and at which instant; or 0 when none is reserved, with the moment from which on
   * it could be used. Permits can be used before their instant, for as long as the requested hold exceeds `hold`.
   */
  readonly units: readonly InstantPermits[]
  /** For how long from its instant each permit can be used, in milliseconds. */
  readonly hold: number
  /** Until when nothing is given; before `now` when there is no pause. */
  readonly pausedUntil: number
  /**
   * When limits end that only other processes name, if none names them again. Until then they hold, and nothing is
   * reserved for later. Infinity when there are none.
   */
  readonly fadesAt: number
  /**
   * How many processes, this one included, lately found that a permit was still to come; 0 when this one has all its
   * permits at once.
   */
  readonly contenders: number
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
  /** One for each limit in force, and those whose counts are kept for a limit that is named again. */
  records: WindowRecord[]
  pausedUntil: number
  /** The latest instant that was reserved. */
  lastAt: number
  /** When it was last asked. */
  askedAt: number
  /** When each process last found that a permit was still to come, by session. */
  contenders?: Record<string, number>
  /**
   * What was given back while other processes have later instants: number, instant, and from when on it can be used, of
   * each in turn, the earliest instant first. It counts as given until its instant is over, because until then it is
   * there for the process that asks next. A state that an early build has kept has none.
   */
  spare?: number[]
}

/** What is known for one limit. */
interface WindowRecord {
  /** Its definition. */
  readonly id: string
  /** When a process last named it. */
  seen: number
  /**
   * The sessions that have named it and not named others since. Undefined when there are more than are noted, and in a
   * record that an early build has made.
   */
  namers?: string[]
  /** Only permits that were reserved for a later instant are known here. */
  readonly since: number
  /**
   * Permits that were reserved for a later instant keep this limit; unknown of a record that an early build has made.
   */
  begun?: number
  readonly state: unknown
}

/** How far ahead any process can reserve permits, in milliseconds. */
export const FARTHEST = 10_000
/** By how much the engine's clock can seem to go back without having been set, in milliseconds. */
const UNEASE = 1000
/**
 * How long a limit that no process names any more stays in force, in milliseconds. A waiting process, for which nothing
 * could be reserved, asks again within half of that.
 */
const IN_FORCE = 5000
/** So many sessions are noted that name one limit. */
const MAX_NAMERS = 16
/** Shorter than the time between two decisions, in milliseconds. */
const MIN_STEP = 0.0005
/** Maximum number of returned instants that are kept for other processes. */
const MAX_FREE = 1000
/** Number, instant and from when on. */
const FIELDS = 3
/** Maximum time between two calls of a waiting process, in milliseconds. */
export const CONTENDS = 3000
/** Maximum number of known processes. With more, each assumes that there are this many. */
const MAX_CONTENDERS = 100
/** So many times an instant is put off because of a period that is over by then. */
const MAX_ROUNDS = 8
/** Divides milliseconds finely enough, and keeps sums of both clocks exact. */
const FRACTION = 1024

/**
 * Reserves permits, at the engine's time: a decision about a state that is passed in and is changed by it. Every engine
 * with a clock uses it, wherever it keeps the state.
 *
 * A process names the limits that it uses. While some processes name one definition and some another, as during a
 * rolling deployment, all of them are in force: they hold for every process. A definition ends at once when every
 * process that named it names others, and otherwise when no process has named it for a while. From then on it refuses
 * no process, but its count continues while its window has permits in it, no matter which process took them. A
 * definition that is named later begins with that count. So of definitions that are not in force, only those are kept
 * whose count no other record has: one with the longest window, and one for each way to divide the calendar.
 *
 * A reservation is a lease of an instant, so a process that was stopped can't use it late. Let `e` and `l` be the
 * earliest and the latest time by the caller's monotonic clock at which this was decided, and `d` the delay from then
 * until the permit opens. The caller may use it from `l + d` to `e + d + hold`. By the engine's clock that is within
 * `hold` of its opening, however slow the way was. The windows are longer by the hold, and a permit opens when fewer
 * entries than the limit lie within a window before that moment. So the bound holds wherever in its stretch each permit
 * is used, and for holds of different lengths. The number of contenders is advice: the log alone keeps the bound.
 * @param state of the limiter; undefined when nothing is known.
 * @param now of a clock that runs on by itself.
 * @param wall milliseconds since 1970.
 */
export function reservePermits(
  state: LimiterState | undefined,
  request: ReservePermits,
  now: number,
  wall: number,
): { state: LimiterState; reserved: Reserved; forgottenIn: number } {
  const decision = new ReservationDecision(state ?? emptyState(), request, now, wall)
  for (const returned of request.returns) decision.takeBack(returned)
  decision.pause(request.pause)
  const units = decision.reserveAll(request)
  const { explain } = request
  return { ...decision.result(), reserved: decision.answer(units, explain) }
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
class ReservationDecision {
  readonly #state: LimiterState
  readonly #now: number
  /** From `now` to the wall clock, coarse enough that adding it and taking it off again changes nothing. */
  readonly #offset: number
  /** The limits in force. */
  readonly #live: readonly Live[]
  /** Those that are not, and whose counts continue. */
  readonly #past: Live[]
  /** How many of the limits in force are the process's own. */
  readonly #own: number
  readonly #fadesAt: number
  readonly #spare: number[]
  readonly #session: string
  /** The number of processes that wait for a permit; 0 when this one need not wait. */
  #contenders = 0
  /** For how long a permit can be used from its instant on, in milliseconds. */
  readonly #hold: number
  /**
   * And for how long before it: by how much the hold of the request is longer than the limits by themselves allow for.
   */
  readonly #lead: number
  /** Permits that were reserved for a later instant keep all limits that there are. */
  readonly #firm: number

  constructor(state: LimiterState, { windows, hold, session }: ReservePermits, now: number, wall: number) {
    this.#state = state
    this.#session = session
    this.#now = now
    this.#offset = Math.floor((wall - now) * FRACTION) / FRACTION
    this.#spare = state.spare ??= []
    if (state.askedAt - now > UNEASE) this.#setBack(state.askedAt - now)
    state.askedAt = now
    const own = windows.map(idOf).map(id => this.#named(id))
    const unnamed = state.records.filter(record => !own.includes(record))
    // An operator names nothing, and withdraws nothing.
    if (own.length > 0) for (const record of unnamed) withdraw(record, session)
    const others = unnamed.filter(record => endsAt(record) >= now)
    const fading = others.filter(({ id }) => !windows.some(window => implies(window, ruleOf(id).definition)))
    this.#fadesAt = Math.min(...fading.map(endsAt))
    const live = [...own, ...others]
    this.#live = live.map(record => this.#ruled(record))
    this.#past = []
    for (const record of unnamed) {
      if (live.includes(record) || isCovered(record, live, unnamed)) continue
      const past = this.#ruled(record)
      if (past.window.forgottenAt(record.state) > this.#timeOf(past.window, now)) this.#past.push(past)
    }
    state.records = [...live, ...this.#past.map(({ record }) => record)]
    this.#own = own.length
    this.#firm = Math.max(...live.map(({ begun = Infinity }) => begun))
    this.#hold = Math.min(...this.#live.map(({ definition }) => definition.hold))
    this.#lead = Math.max(hold - this.#hold, 0)
    while (this.#spare.length > 0 && this.#spare[1]! < now) this.#refund(...takeOut(this.#spare, 0))
  }

  /**
   * Keeps an instant that is still to come for others where some have later ones: the bound holds with it as it is, and
   * nothing could be put in its place later.
   */
  takeBack({ n, at, from }: ReturnedPermits): void {
    const spare = this.#spare
    if (at < this.#now || at <= this.#firm || this.#isNewest(at) || spare.length === FIELDS * MAX_FREE) {
      this.#refund(n, at)
    } else {
      let place = spare.length
      while (place > 0 && spare[place - 2]! > at) place -= FIELDS
      if (place > 0 && spare[place - 2] === at && spare[place - 1] === from) spare[place - FIELDS]! += n
      else spare.splice(place, 0, n, at, from)
    }
    while (spare.length > 0 && this.#isNewest(spare.at(-2)!))
      this.#refund(...takeOut(spare, spare.length - FIELDS))
  }

  pause(duration: number | undefined): void {
    if (duration === 0) this.#state.pausedUntil = -Infinity
    else if (duration !== undefined)
      this.#state.pausedUntil = Math.max(this.#state.pausedUntil, this.#now + duration)
  }

  reserveAll({ units, horizon }: ReservePermits): InstantPermits[] {
    let beyond: number | undefined
    let vain: Unit | undefined
    let vainAt = Infinity
    return units.map(unit => {
      if (unit === vain) return { n: 0, at: vainAt }
      const { n, more, within } = unit
      const place = beyond === undefined ? this.#placeOfSpare(n, 0) : -1
      const from = beyond ?? (place < 0 ? this.#earliest(n, 0) : this.#spare[place + 1]! - this.#lead)
      if (from > this.#now && this.#contenders === 0) this.#contenders = this.#contend()
      if (from - this.#now > horizon || from > this.#fadesAt) beyond = Math.min(from, this.#fadesAt)
      if (beyond !== undefined || from - this.#now > within) {
        vain = unit
        vainAt = beyond ?? from
        return { n: 0, at: vainAt }
      }
      vain = undefined
      if (place >= 0) {
        const at = this.#spare[place + 1]!
        return { n: this.#takeSpare(place, n + more), at }
      }
      const all = n + (more > 0 ? this.#room(n, more, from) : 0)
      return { n: all, at: this.#take(all, from) }
    })
  }

  /** Counts the process among those that still wait for a permit, and returns their number. */
  #contend(): number {
    const known = Object.entries(this.#state.contenders ?? {})
    const contenders = Object.fromEntries(known.filter(([, seenAt]) => this.#now - seenAt <= CONTENDS))
    if (Object.keys(contenders).length < MAX_CONTENDERS) contenders[this.#session] = this.#now
    this.#state.contenders = contenders
    return Object.keys(contenders).length
  }

  /** Counts permits that can be used from a moment on, and gives their instant. */
  #take(n: number, from: number): number {
    const at = instantOf(from, this.#lead)
    for (const { window, record } of this.#live) {
      const now = this.#timeOf(window, this.#now)
      window.take(record.state, n, this.#timeOf(window, at), 0, now, this.#lead)
    }
    for (const { window, record } of this.#past)
      window.note(record.state, n, this.#timeOf(window, at), this.#timeOf(window, this.#now))
    this.#state.lastAt = Math.max(this.#state.lastAt, at)
    return at
  }

  answer(units: readonly InstantPermits[], explain: ReservePermits['explain']): Reserved {
    return {
      now: this.#now,
      units,
      hold: this.#hold,
      pausedUntil: this.#state.pausedUntil,
      fadesAt: this.#fadesAt,
      contenders: this.#contenders,
      explained: explain && this.#explained(explain),
    }
  }

  result(): { state: LimiterState; forgottenIn: number } {
    const now = this.#now
    const known = [...this.#live, ...this.#past].map(({ window, record }) =>
      Math.max(window.forgottenAt(record.state) - this.#timeOf(window, now), 0),
    )
    return { state: this.#state, forgottenIn: Math.max(0, ...known, this.#state.pausedUntil - now) }
  }

  #refund(n: number, at: number): void {
    for (const { window, record } of [...this.#live, ...this.#past]) {
      if (at > record.since) window.refund(record.state, n, this.#timeOf(window, at))
    }
  }

  #isNewest(at: number): boolean {
    return this.#live.every(({ window, record }) => window.isNewest(record.state, this.#timeOf(window, at)))
  }

  /**
   * The place of the earliest instant that was given back, has as many permits and can be used for as long as is
   * wanted; -1 when there is none.
   */
  #placeOfSpare(n: number, first: number): number {
    const spare = this.#spare
    const begin = Math.max(this.#state.pausedUntil, this.#now)
    for (let place = first; place < spare.length; place += FIELDS) {
      const at = spare[place + 1]!
      if (spare[place]! >= n && at > this.#firm && at - this.#lead >= Math.max(begin, spare[place + 2]!))
        return place
    }
    return -1
  }

  /** Takes up to a number of the permits that were given back. */
  #takeSpare(place: number, max: number): number {
    const spare = this.#spare
    if (spare[place]! <= max) return takeOut(spare, place)[0]
    spare[place]! -= max
    return max
  }

  /** The time `at` on the clock that a rule uses. */
  #timeOf(window: Window, at: number): number {
    return window.wall ? at + this.#offset : at
  }

  /** The record of a limit that is named at this time. */
  #named(id: string): WindowRecord {
    const { records, lastAt } = this.#state
    const begun = Math.max(lastAt, this.#now - MIN_STEP)
    const known = records.find(record => record.id === id)
    if (known) {
      if (endsAt(known) < this.#now) Object.assign(known, { begun, namers: [] })
      known.seen = this.#now
      if (known.namers && !known.namers.includes(this.#session)) {
        if (known.namers.length < MAX_NAMERS) known.namers.push(this.#session)
        else delete known.namers
      }
      return known
    }
    const source = sourceFor(id, records)
    // Permits that were reserved before are not counted here, so they can't be given back here either.
    const since = source ? source.since : begun
    return { id, seen: this.#now, namers: [this.#session], since, begun, state: seeded(id, source) }
  }

  /** A record with its rule. A count from before the clock was set back is counted as of now. */
  #ruled(record: WindowRecord): Live {
    const { window, definition } = ruleOf(record.id)
    const time = this.#timeOf(window, this.#now)
    const known = 2 * memoryOf(definition) + FARTHEST + UNEASE
    if (window.forgottenAt(record.state) > time + known) window.rebase(record.state, time)
    return { window, definition, record }
  }

  /** Handles a clock that was set back by this many milliseconds. Later events are put off by as much. */
  #setBack(by: number): void {
    const state = this.#state
    state.pausedUntil -= by
    // Which of these instants are over is not known.
    this.#spare.length = 0
    delete state.contenders
    for (const record of state.records) record.seen = Math.min(record.seen, this.#now)
  }

  /** The time from which a number of permits is available after `ahead` others. */
  #earliest(n: number, ahead: number): number {
    const from = Math.max(this.#now, this.#state.pausedUntil)
    let at = from
    for (let round = 0; round < MAX_ROUNDS; round++) {
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
      const ready = window.readyAt(record.state, time, n, ahead, this.#lead)
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
      window.allows(record.state, this.#timeOf(window, at), n + room, 0, this.#lead),
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
      const wait = window.readyAt(record.state, time, n, ahead, this.#lead) - time
      if (wait > longest) [longest, binding] = [wait, index]
    }
    const reports = own.map(({ window, definition: { limit, per, kind }, record: { state } }) => {
      const time = this.#timeOf(window, now)
      const remaining = Math.max(limit - window.used(state, time), 0)
      return { limit, per, window: kind, remaining, resetIn: window.returnsAt(state, time) - time }
    })
    // Callers ask again when the limits of others have ended.
    return { ready: Math.min(this.#earliestWithSpare(n, ahead), this.#fadesAt), binding, reports }
  }

  /** As `#earliest`, if the waiters before take what was given back, too. */
  #earliestWithSpare(n: number, ahead: number): number {
    const spare = this.#spare
    let left = ahead
    for (let place = this.#placeOfSpare(1, 0); place >= 0; place = this.#placeOfSpare(1, place + FIELDS)) {
      if (spare[place]! >= left + n) return spare[place + 1]! - this.#lead
      left = Math.max(left - spare[place]!, 0)
    }
    return this.#earliest(n, left)
  }
}

/**
 * The instant of permits that can be used from a moment on. Never rounded so that the moment would be an earlier one.
 */
function instantOf(from: number, lead: number): number {
  const at = from + lead
  return at - lead < from ? at + Math.abs(at) * Number.EPSILON : at
}

/** Notes that a session names other limits than this one. */
function withdraw({ namers }: WindowRecord, session: string): void {
  const place = namers?.indexOf(session) ?? -1
  if (place >= 0) namers!.splice(place, 1)
}

/** Until when a limit is in force if no process names it again. */
export function endsAt({ seen, namers }: Pick<WindowRecord, 'seen' | 'namers'>): number {
  return namers?.length === 0 ? -Infinity : seen + IN_FORCE
}

/**
 * Whether another record knows all that this one knows: one that is in force, or another one that is not. Of equals the
 * first is kept.
 */
function isCovered(
  record: WindowRecord,
  live: readonly WindowRecord[],
  unnamed: readonly WindowRecord[],
): boolean {
  const { definition } = ruleOf(record.id)
  const memory = memoryOf(definition)
  const own = unnamed.indexOf(record)
  const knowsAll = (other: WindowRecord, isFirst: boolean): boolean => {
    const its = ruleOf(other.id).definition
    return countsAlike(definition, its) && (isFirst ? memoryOf(its) >= memory : memoryOf(its) > memory)
  }
  return (
    live.some(other => knowsAll(other, true)) || unnamed.some((other, place) => knowsAll(other, place < own))
  )
}

/** Whether one count serves both limits. */
function countsAlike(one: WindowDefinition, other: WindowDefinition): boolean {
  if (one.kind !== 'calendar') return other.kind !== 'calendar'
  return other.kind === 'calendar' && one.per === other.per && one.timeZone === other.timeZone
}

function memoryOf({ per, guard }: WindowDefinition): number {
  return per + guard
}

/** Removes what is kept of one instant from such a list. */
function takeOut(list: number[], place: number): [n: number, at: number] {
  return list.splice(place, FIELDS) as [number, number]
}

/** The record from which that of a new limit can begin: permits given under another limit count under this one, too. */
function sourceFor(id: string, records: readonly WindowRecord[]): WindowRecord | undefined {
  const { definition } = ruleOf(id)
  let source: WindowRecord | undefined
  let longest = 0
  for (const record of records) {
    const other = ruleOf(record.id).definition
    if (countsAlike(definition, other) && memoryOf(other) > longest)
      [source, longest] = [record, memoryOf(other)]
  }
  return source
}

/** The first state of a new limit. */
function seeded(id: string, source: WindowRecord | undefined): unknown {
  const window = ruleOf(id).window
  if (!source) return window.empty()
  const { kind, hold } = ruleOf(id).definition
  if (kind === 'calendar') return structuredClone(source.state)
  const other = ruleOf(source.id).definition
  const log = other.kind === 'smooth' ? (source.state as Spacing).log : (source.state as GrantLog)
  // Permits can still be used for as long as the process was promised when they were given.
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
