import type { CalendarPeriods, Period } from './calendar-periods.js'
import type { Window } from './window.js'

/** The permits of the period of the last grant. */
export interface PeriodCount {
  start: number
  end: number
  used: number
  /**
   * The earlier periods that had not ended, the oldest first, and the last one that had: start, end and count of each.
   */
  before: number[]
}

/** The fields of an earlier period. */
const FIELDS = 3

/**
 * At most `limit` permits in each period of the wall clock, like a service that starts from zero with each second or
 * day. Around the end of a period, up to twice as many can be granted within a moment.
 *
 * Permits that were granted ahead can be refunded. Other callers get them only while there are no grants in a later
 * period, because no grant is earlier than the one before it.
 *
 * With `jitter` or a lead, nothing is granted in the last milliseconds of a period, because the call could arrive in
 * the next one.
 */
export class CalendarWindow implements Window<PeriodCount> {
  readonly kind = 'calendar'
  readonly wall = true

  constructor(
    readonly limit: number,
    readonly per: number,
    /** Milliseconds, less than the shortest period. */
    readonly jitter: number,
    readonly periods: CalendarPeriods,
  ) {}

  empty(): PeriodCount {
    return { start: -Infinity, end: -Infinity, used: 0, before: [] }
  }

  allows(count: PeriodCount, now: number, n: number, ahead: number, lead = 0): boolean {
    const guard = this.jitter + lead
    if (now < count.end) {
      const left = this.limit - count.used
      return now >= count.start && now < count.end - guard && n + ahead <= left
    }
    return n + ahead <= this.limit && (guard === 0 || now < this.periods.at(now).end - guard)
  }

  readyAt(count: PeriodCount, now: number, n: number, ahead: number, lead = 0): number {
    const period = this.#period(count, now)
    const at = Math.max(now, period.start)
    // Permits that do not fit before the guard at the end count in the next period, as if this one were full.
    const left = this.limit - usedIn(period, count)
    const wanted = n + ahead
    const isOpen = at < period.end - this.jitter - lead
    if (isOpen && wanted <= left) return at
    const periods = Math.max(Math.ceil((wanted - (isOpen ? Math.max(left, 0) : 0)) / this.limit), 1)
    return periods === 1 ? period.end : this.periods.after(period, periods).start
  }

  take(count: PeriodCount, n: number, at: number, _late: number, now = at): void {
    if (at >= count.end) {
      const { before } = count
      if (count.used > 0) before.push(count.start, count.end, count.used)
      let over = 0
      while (before.length > over + FIELDS && before[over + FIELDS + 1]! <= now) over += FIELDS
      before.splice(0, over)
      const { start, end } = this.periods.at(at)
      count.start = start
      count.end = end
      count.used = 0
    }
    count.used += n
  }

  note(count: PeriodCount, n: number, at: number, now: number): void {
    this.take(count, n, at, 0, now)
  }

  refund(count: PeriodCount, n: number, at: number): void {
    const { before } = count
    if (at >= count.start && at < count.end) count.used = Math.max(count.used - n, 0)
    for (let place = 0; place < before.length; place += FIELDS) {
      if (at < before[place]! || at >= before[place + 1]!) continue
      before[place + 2] = Math.max(before[place + 2]! - n, 0)
    }
    while (count.used === 0 && before.length > 0) {
      const [start, end, used] = before.splice(-FIELDS) as [number, number, number]
      count.start = start
      count.end = end
      count.used = used
    }
  }

  isNewest(count: PeriodCount, at: number): boolean {
    return at >= count.start
  }

  used(count: PeriodCount, now: number): number {
    return now < count.end ? count.used : 0
  }

  returnsAt(count: PeriodCount, now: number): number {
    return this.used(count, now) > 0 ? count.end : now
  }

  forgottenAt(count: PeriodCount): number {
    return count.end
  }

  rebase(count: PeriodCount, now: number): void {
    const { start, end } = this.periods.at(now)
    count.start = start
    count.end = end
    count.used = Math.max(this.limit, count.used)
    count.before = []
  }

  /** The period of a time, but never one before that of the last grant. */
  #period(count: PeriodCount, now: number): Period {
    return now < count.end ? count : this.periods.at(now)
  }
}

function usedIn(period: Period, count: PeriodCount): number {
  return period.end === count.end ? count.used : 0
}
