import { amountOf, NOTHING, placeOf, type Cost } from './cost.js'
import { idOf, implies, ruleOf, sharesPeriods, type WindowDefinition } from './definition.js'
import type { GrantLog } from './grant-log.js'
import type { Spacing } from './smooth-window.js'
import type {
  Explain,
  Explained,
  InstantPermits,
  ReservePermits,
  Reserved,
  ReturnedPermits,
  Unit,
  WaitingTenant,
} from './reservation.js'
import { limitReport, settle, type Window } from './window.js'

/** The state of a limiter in an engine: plain data. */
export interface LimiterState {
  /** The limits in force, and those whose counts are kept in case a process uses them again. */
  records: WindowRecord[]
  pausedUntil: number
  /** The latest instant that was reserved. */
  lastAt: number
  /** The time of the last request. */
  askedAt: number
  /** When each process last had to wait for a permit, by session. */
  contenders?: Record<string, number>
  /** The tenants of these processes, by session: names and weights, alternating. Left out for one without tenants. */
  tenants?: Record<string, TenantList>
  /**
   * Permits that were returned while other processes have later instants: for each, its number, its instant, and from
   * when it can be used, the earliest instant first. They count until their instant has passed, and the next process
   * that requests permits gets them. Missing in a state of an early build.
   */
  spare?: number[]
}

/** Names and weights of tenants, alternating. */
type TenantList = readonly (string | number)[]

/** The state of one limit. */
interface WindowRecord {
  /** Its definition. */
  readonly id: string
  /** When a process last used it. */
  seen: number
  /**
   * The sessions that use it, and have not used others since. Undefined if there are too many, and in a record of an
   * early build.
   */
  namers?: string[]
  /** It counts only permits that were reserved for a later instant than this. */
  readonly since: number
  /** Permits that were reserved for a later instant than this keep the limit. Missing in a record of an early build. */
  begun?: number
  readonly state: unknown
}

/** How far ahead any process can reserve permits, in milliseconds. */
export const FARTHEST = 10_000
/** By how much the engine's clock can go back without having been set, in milliseconds. */
const MAX_BACKSTEP = 1000
/**
 * Time for which a limit stays in force after its last use, in milliseconds. A waiting process that got no permits
 * sends its next request within half of that.
 */
const IN_FORCE = 5000
/** Maximum number of sessions in `namers`. */
const MAX_NAMERS = 16
/** Less than the time between two decisions, in milliseconds. */
const MIN_STEP = 0.0005
/** Maximum number of returned instants that are kept for other processes. */
const MAX_SPARES = 1000
/** The fields of a spare: number, instant, and from when it can be used. */
const FIELDS = 3
/** Maximum time between two calls of a waiting process, in milliseconds. */
export const CONTENDS = 3000
/** Maximum number of known processes. With more, each assumes that there are this many. */
const MAX_CONTENDERS = 100
/** The tenants of a process without tenants. */
const NO_TENANT: TenantList = ['', 1]
/** Parts of a contender. */
const PRECISION = 1e6
/** Maximum number of rounds in the search for an instant that keeps all limits. */
const MAX_ROUNDS = 8
/** Parts of a millisecond. They are fine enough, and keep sums of both clocks exact. */
const FRACTION = 1024

/**
 * Decides a request for permits, at the engine's time, on a state that it changes. Every engine with a shared clock
 * uses it, wherever it keeps the state.
 *
 * Each request has the limits that its process uses. While processes use different definitions, as during a rolling
 * deployment, all of them are in force: they apply to every process. A definition ends at once when every process that
 * used it uses others, and otherwise when no process has used it for a while. It then delays no process, but its count
 * continues while its window has permits in it, no matter which process took them. A definition that is used later
 * begins with that count. So of the definitions that are not in force, only those are kept whose count no other record
 * has: the one with the longest window, and one for each way to divide the calendar.
 *
 * A reservation is valid only around its instant, so a process that was paused can't use it late. Let `e` and `l` be
 * the earliest and the latest time of this decision by the caller's monotonic clock, and `d` the delay from the
 * decision until the permit becomes valid. The caller may use it from `l + d` to `e + d + hold`. By the engine's clock
 * that is within `hold` after it becomes valid, no matter how slow the network is. The windows are longer by the hold,
 * and a permit becomes valid when fewer entries than the limit are within a window before that moment. So the bound
 * holds for any use within that time, and for holds of different lengths. The number of contenders is only advice: the
 * log alone keeps the bound.
 * @param state the state of the limiter; undefined if there is none.
 * @param now the time of a monotonic clock.
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
  decision.overdraw(request.overdrawn)
  decision.pause(request.pause)
  const units = decision.reserveAll(request)
  const { explain } = request
  return { ...decision.result(), reserved: decision.answer(units, explain) }
}

function emptyState(): LimiterState {
  return { records: [], pausedUntil: -Infinity, lastAt: -Infinity, askedAt: -Infinity }
}

/** A limit with its state. */
interface Live {
  readonly window: Window
  readonly definition: WindowDefinition
  readonly record: WindowRecord
  /** The place of its unit in the costs of the request. */
  readonly place: number
}

class ReservationDecision {
  readonly #state: LimiterState
  readonly #now: number
  /** The wall clock minus `now`, so coarse that adding and subtracting it changes nothing. */
  readonly #offset: number
  /** The limits in force. */
  readonly #live: readonly Live[]
  /** The limits that are not in force, and whose counts continue. */
  readonly #past: Live[]
  /** Number of limits in force that the process itself uses. */
  readonly #own: number
  readonly #fadesAt: number
  readonly #spare: number[]
  readonly #session: string
  readonly #measures: readonly string[]
  readonly #tenants: readonly WaitingTenant[] | undefined
  /** The number of processes that wait for a permit; 0 when this one need not wait. */
  #contenders = 0
  /** For each tenant of this process, the number of processes in which it waits. */
  #processes: readonly number[] | undefined
  /** Time from its instant for which a permit can be used, in milliseconds. */
  readonly #hold: number
  /** Time before its instant for which it can be used: the excess of the requested hold over that of the limits. */
  readonly #lead: number
  /** Permits that were reserved for a later instant than this keep all limits. */
  readonly #firm: number

  constructor(state: LimiterState, request: ReservePermits, now: number, wall: number) {
    const { windows, measures = [], hold, session, tenants } = request
    this.#state = state
    this.#session = session
    this.#measures = measures
    // An empty list counts as none.
    this.#tenants = tenants?.length === 0 ? undefined : tenants
    this.#now = now
    this.#offset = Math.floor((wall - now) * FRACTION) / FRACTION
    this.#spare = state.spare ??= []
    if (state.askedAt - now > MAX_BACKSTEP) this.#setBack(state.askedAt - now)
    state.askedAt = now
    const own = windows.map(idOf).map(id => this.#named(id))
    const unnamed = state.records.filter(record => !own.includes(record))
    // An operator uses no limits, and ends the use of none.
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
   * Takes back permits. If other processes have later instants, keeps a future instant as a spare for others: the bound
   * holds with it, and no other permit could take its place.
   */
  takeBack({ n, at, from, amounts }: ReturnedPermits): void {
    const spare = this.#spare
    // Those of other units go to the next callers with any cost.
    if (amounts) this.#refund(n, at, amounts)
    else if (
      at < this.#now ||
      at <= this.#firm ||
      this.#isNewest(at) ||
      spare.length === FIELDS * MAX_SPARES
    ) {
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

  /** Counts amounts that calls have used in addition to their costs. */
  overdraw(amounts: Cost['amounts']): void {
    if (!amounts) return
    for (const { window, record, place } of [...this.#live, ...this.#past]) {
      const amount = amountOf({ n: 0, amounts }, place)
      const now = this.#timeOf(window, this.#now)
      if (amount > 0) settle(window, record.state, amount, now, now)
    }
  }

  pause(duration: number | undefined): void {
    if (duration === 0) this.#state.pausedUntil = -Infinity
    else if (duration !== undefined)
      this.#state.pausedUntil = Math.max(this.#state.pausedUntil, this.#now + duration)
  }

  reserveAll({ units, horizon }: ReservePermits): InstantPermits[] {
    let beyond: number | undefined
    let lastRefused: Unit | undefined
    let lastRefusedAt = Infinity
    return units.map(unit => {
      if (unit === lastRefused) return { n: 0, at: lastRefusedAt }
      const { n, more, within, amounts } = unit
      const place = beyond === undefined && !amounts ? this.#placeOfSpare(n, 0) : -1
      const from =
        beyond ?? (place < 0 ? this.#earliest(unit, NOTHING) : this.#spare[place + 1]! - this.#lead)
      if (from > this.#now && this.#contenders === 0) this.#contenders = this.#contend()
      if (from - this.#now > horizon || from > this.#fadesAt) beyond = Math.min(from, this.#fadesAt)
      if (beyond !== undefined || from - this.#now > within) {
        lastRefused = unit
        lastRefusedAt = beyond ?? from
        return { n: 0, at: lastRefusedAt }
      }
      lastRefused = undefined
      if (place >= 0) {
        const at = this.#spare[place + 1]!
        return { n: this.#takeSpare(place, n + more), at }
      }
      const all = n + (more > 0 ? this.#room(n, more, from) : 0)
      return { n: all, at: this.#take({ n: all, amounts }, from) }
    })
  }

  /** Adds the process to those that wait for a permit, and returns their number. */
  #contend(): number {
    const known = Object.entries(this.#state.contenders ?? {})
    const contenders = Object.fromEntries(known.filter(([, seenAt]) => this.#now - seenAt <= CONTENDS))
    if (Object.keys(contenders).length < MAX_CONTENDERS) contenders[this.#session] = this.#now
    this.#state.contenders = contenders
    const count = Object.keys(contenders).length
    return this.#tenants || this.#state.tenants ? this.#contendAmongTenants(contenders) : count
  }

  /** Records the tenants of the process. Returns the weights of all tenants in relation to those of this process. */
  #contendAmongTenants(contenders: Readonly<Record<string, number>>): number {
    const own = this.#tenants?.flatMap(({ name, weight }) => [name, weight])
    const before = Object.entries(this.#state.tenants ?? {})
    const others = before.filter(([session]) => session in contenders && session !== this.#session)
    const isKnown = own !== undefined && this.#session in contenders
    const tenants = Object.fromEntries(isKnown ? [...others, [this.#session, own]] : others)
    this.#state.tenants = tenants
    if (Object.keys(tenants).length === 0) delete this.#state.tenants
    const processes = new Map<string, number>()
    for (const list of [...others.map(([, list]) => list), own ?? []]) {
      for (const [name] of pairsOf(list)) processes.set(name, (processes.get(name) ?? 0) + 1)
    }
    const weightOf = (list: TenantList): number =>
      pairsOf(list).reduce(
        (sum, [name, weight]) => sum + weight / (name === '' ? 1 : processes.get(name)!),
        0,
      )
    this.#processes = this.#tenants?.map(({ name }) => (name === '' ? 1 : processes.get(name)!))
    const part = weightOf(own ?? NO_TENANT)
    const sessions = Object.keys(contenders).filter(session => session !== this.#session)
    const all = sessions.reduce((sum, session) => sum + weightOf(tenants[session] ?? NO_TENANT), part)
    return Math.round((all / part) * PRECISION) / PRECISION
  }

  /** Counts permits that can be used from this moment on, and returns their instant. */
  #take(cost: Cost, from: number): number {
    const at = instantOf(from, this.#lead)
    for (const { window, record, place } of this.#live) {
      const now = this.#timeOf(window, this.#now)
      const amount = amountOf(cost, place)
      if (amount > 0) window.take(record.state, amount, this.#timeOf(window, at), 0, now, this.#lead)
    }
    for (const { window, record, place } of this.#past) {
      const amount = amountOf(cost, place)
      if (amount > 0)
        window.note(record.state, amount, this.#timeOf(window, at), this.#timeOf(window, this.#now))
    }
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
      processes: this.#processes,
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

  #refund(n: number, at: number, amounts?: Cost['amounts']): void {
    for (const { window, definition, record, place } of [...this.#live, ...this.#past]) {
      const amount = amountOf({ n, amounts }, place)
      if (at <= record.since || amount === 0) continue
      const time = this.#timeOf(window, at)
      if (definition.unit === undefined) window.refund(record.state, amount, time)
      else settle(window, record.state, -amount, time, this.#timeOf(window, this.#now))
    }
  }

  #isNewest(at: number): boolean {
    return this.#live.every(({ window, record }) => window.isNewest(record.state, this.#timeOf(window, at)))
  }

  /** Returns the place of the earliest spare with enough permits and a sufficient hold; -1 if there is none. */
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

  /** Takes at most `max` permits of a spare. */
  #takeSpare(place: number, max: number): number {
    const spare = this.#spare
    if (spare[place]! <= max) return takeOut(spare, place)[0]
    spare[place]! -= max
    return max
  }

  /** Converts the time `at` to the clock of a window. */
  #timeOf(window: Window, at: number): number {
    return window.wall ? at + this.#offset : at
  }

  /** Returns the record of a limit that the process uses. */
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
    // Permits that were reserved before are not counted here, so they can't be refunded here either.
    const since = source ? source.since : begun
    return { id, seen: this.#now, namers: [this.#session], since, begun, state: seeded(id, source) }
  }

  /** Returns a record with its window. If the clock was set back, permits of later times count as granted now. */
  #ruled(record: WindowRecord): Live {
    const { window, definition } = ruleOf(record.id)
    const time = this.#timeOf(window, this.#now)
    const known = 2 * memoryOf(definition) + FARTHEST + MAX_BACKSTEP
    if (window.forgottenAt(record.state) > time + known) window.rebase(record.state, time)
    return { window, definition, record, place: placeOf(definition.unit, this.#measures) }
  }

  /**
   * Handles a clock that was set back by this many milliseconds. Shifts the end of the pause by as much, limits `seen`
   * of each record to now, and drops the spares and the contenders. Keeps `lastAt`. `#ruled` corrects the windows.
   */
  #setBack(by: number): void {
    const state = this.#state
    state.pausedUntil -= by
    // It is not known which of the spares have passed.
    this.#spare.length = 0
    delete state.contenders
    for (const record of state.records) record.seen = Math.min(record.seen, this.#now)
  }

  /** Returns when permits are available after those ahead. */
  #earliest(cost: Cost, ahead: Cost): number {
    const from = Math.max(this.#now, this.#state.pausedUntil)
    let at = from
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const next = this.#readyFrom(at, cost, ahead)
      if (next === at)
        return this.#live.some(({ window, place }) => window.limit < amountOf(cost, place)) ? Infinity : at
      at = next
    }
    return Infinity
  }

  #readyFrom(from: number, cost: Cost, ahead: Cost): number {
    let at = from
    for (const live of this.#live) {
      const { window } = live
      const time = this.#timeOf(window, from)
      const ready = this.#readyAt(live, time, cost, ahead)
      // Converting to another clock and back may round.
      if (ready > time) at = Math.max(at, window.wall ? ready - this.#offset : ready)
    }
    return at
  }

  #readyAt({ window, record, place }: Live, time: number, cost: Cost, ahead: Cost): number {
    return window.readyAt(record.state, time, amountOf(cost, place), amountOf(ahead, place), this.#lead)
  }

  /** Returns how many further permits the same instant has, up to `more`. Only for calls without other units. */
  #room(n: number, more: number, at: number): number {
    let room = more
    const counting = this.#live.filter(({ definition }) => definition.unit === undefined)
    for (const { window, record } of counting) {
      const used = window.used(record.state, this.#timeOf(window, at))
      room = window.kind === 'smooth' ? 0 : Math.min(room, window.limit - used - n)
    }
    const allowed = counting.every(({ window, record }) =>
      window.allows(record.state, this.#timeOf(window, at), n + room, 0, this.#lead),
    )
    return allowed ? room : 0
  }

  #explained({ ahead, amountsAhead, ...cost }: Explain): Explained {
    const now = this.#now
    const own = this.#live.slice(0, this.#own)
    let longest = 0
    let binding
    const others = { n: ahead, amounts: amountsAhead }
    for (const [index, live] of own.entries()) {
      const time = this.#timeOf(live.window, now)
      const wait = this.#readyAt(live, time, cost, others) - time
      if (wait > longest) [longest, binding] = [wait, index]
    }
    const reports = own.map(({ window, definition, record }) =>
      limitReport(window, definition.unit, record.state, this.#timeOf(window, now)),
    )
    // Callers send another request when the limits of others have ended.
    return { ready: Math.min(this.#earliestWithSpare(cost, others), this.#fadesAt), binding, reports }
  }

  /** As `#earliest`, if the waiters ahead also take spares. */
  #earliestWithSpare(cost: Cost, ahead: Cost): number {
    if (cost.amounts) return this.#earliest(cost, ahead)
    const spare = this.#spare
    const { n } = cost
    let left = ahead.n
    for (let place = this.#placeOfSpare(1, 0); place >= 0; place = this.#placeOfSpare(1, place + FIELDS)) {
      if (spare[place]! >= left + n) return spare[place + 1]! - this.#lead
      left = Math.max(left - spare[place]!, 0)
    }
    return this.#earliest(cost, { n: left })
  }
}

function pairsOf(list: TenantList): (readonly [name: string, weight: number])[] {
  return list.flatMap((name, place) =>
    place % 2 === 0 ? [[name as string, list[place + 1] as number] as const] : [],
  )
}

/** The instant of permits that can be used from a moment on, rounded so that they can't be used earlier. */
function instantOf(from: number, lead: number): number {
  const at = from + lead
  return at - lead < from ? at + Math.abs(at) * Number.EPSILON : at
}

/** Removes a session that uses other limits than this one. */
function withdraw({ namers }: WindowRecord, session: string): void {
  const place = namers?.indexOf(session) ?? -1
  if (place >= 0) namers!.splice(place, 1)
}

/** Until when a limit is in force if no process uses it again. */
export function endsAt({ seen, namers }: Pick<WindowRecord, 'seen' | 'namers'>): number {
  return namers?.length === 0 ? -Infinity : seen + IN_FORCE
}

/** Whether another record, in force or not, has the whole count of this one. Of equal records, the first is kept. */
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
  if (one.unit !== other.unit) return false
  if (one.kind !== 'calendar') return other.kind !== 'calendar'
  return other.kind === 'calendar' && sharesPeriods(one, other)
}

function memoryOf({ per, guard }: WindowDefinition): number {
  return per + guard
}

/** Removes a spare from a list of spares. */
function takeOut(list: number[], place: number): [n: number, at: number] {
  return list.splice(place, FIELDS) as [number, number]
}

/** Returns the record whose count a new limit begins with, because permits under another limit count under it, too. */
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
