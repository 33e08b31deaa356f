import type { CalendarPeriods, Period } from './calendar-periods.js'
import type { Window } from './window.js'

/** What was given in one period; that of the last grant. */
export interface PeriodCount {
  start: number
  end: number
  used: number
}

/**
 * At most `limit` permits in each period of the wall clock: what a service counts that begins anew with each second or
 * day. Around the end of a period up to twice as many can come within a moment.
 *
 * With `jitter` nothing is given in the last milliseconds of a period, because it could arrive in the next.
 */
export class CalendarWindow implements Window<PeriodCount> {
  readonly kind = 'calendar'
  readonly wall = true
  readonly #periods: CalendarPeriods
  readonly #jitter: number

  /** @param jitter milliseconds, less than the shortest period. */
  constructor(
    readonly limit: number,
    readonly per: number,
    jitter: number,
    periods: CalendarPeriods,
  ) {
    this.#jitter = jitter
    this.#periods = periods
  }

  withLimit(limit: number): CalendarWindow {
    return new CalendarWindow(limit, this.per, this.#jitter, this.#periods)
  }

  empty(): PeriodCount {
    return { start: -Infinity, end: -Infinity, used: 0 }
  }

  allows(count: PeriodCount, now: number, n: number, ahead: number): boolean {
    if (now < count.end) {
      const left = this.limit - count.used
      return now >= count.start && now < count.end - this.#jitter && n + ahead <= left
    }
    return n + ahead <= this.limit && (this.#jitter === 0 || now < this.#periods.at(now).end - this.#jitter)
  }

  readyAt(count: PeriodCount, now: number, n: number, ahead: number): number {
    const period = this.#period(count, now)
    const at = Math.max(now, period.start)
    // What doesn't fit before the guard at the end goes into the next period as if this one were full.
    const left = at < period.end - this.#jitter ? this.limit - usedIn(period, count) : 0
    const wanted = n + ahead
    if (wanted <= left) return at
    const periods = Math.ceil((wanted - left) / this.limit)
    return periods === 1 ? period.end : this.#periods.after(period, periods).start
  }

  take(count: PeriodCount, n: number, at: number, _late: number): void {
    if (at >= count.end) {
      const { start, end } = this.#periods.at(at)
      count.start = start
      count.end = end
      count.used = 0
    }
    count.used += n
  }

  untimed(): number {
    return 0
  }

  refund(count: PeriodCount, n: number, at: number): void {
    if (at >= count.start && at < count.end) count.used = Math.max(count.used - n, 0)
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
    const { start, end } = this.#periods.at(now)
    count.start = start
    count.end = end
    count.used = Math.max(this.limit, count.used)
  }

  /** The period that counts at this time: never one before that of the last grant. */
  #period(count: PeriodCount, now: number): Period {
    return now < count.end ? count : this.#periods.at(now)
  }
}

function usedIn(period: Period, count: PeriodCount): number {
  return period.end === count.end ? count.used : 0
}
