/** A stretch of the wall clock: milliseconds since 1970, the end not included. */
export interface Period {
  readonly start: number
  readonly end: number
}

const SECOND = 1000
export const DAY = 86_400_000
/** No local day is longer. */
const MAX_DAY_LENGTH = 50 * 3_600_000

/** How the wall clock is divided. */
export interface CalendarPeriods {
  at(time: number): Period
  /** The period that comes `count` periods after one; `count` is at least 1. */
  after(period: Period, count: number): Period
}

/** Periods of equal length, counted from 1970-01-01T00:00Z. */
export class EqualPeriods implements CalendarPeriods {
  readonly #length: number

  /** @param length whole milliseconds. */
  constructor(length: number) {
    this.#length = length
  }

  at(time: number): Period {
    const start = Math.floor(time / this.#length) * this.#length
    return { start, end: start + this.#length }
  }

  after({ start }: Period, count: number): Period {
    return this.at(start + count * this.#length)
  }
}

/** The days of a time zone, which have 23 or 25 hours where clocks are changed. */
export class ZoneDays implements CalendarPeriods {
  readonly #format: Intl.DateTimeFormat

  constructor(timeZone: string) {
    // Its dates sort like the days.
    this.#format = new Intl.DateTimeFormat('en-CA', {
      timeZone,
      calendar: 'iso8601',
      numberingSystem: 'latn',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
    })
  }

  at(time: number): Period {
    const date = this.#date(time)
    // Clocks are changed at whole seconds. A day need not begin at midnight: where the hour after it is left out, the
    // day begins at one o'clock.
    return {
      start: firstSecond(time - MAX_DAY_LENGTH, time, second => this.#date(second) >= date),
      end: firstSecond(time, time + MAX_DAY_LENGTH, second => this.#date(second) > date),
    }
  }

  after({ end }: Period, count: number): Period {
    // Noon is the same day whether clocks were changed or not.
    return this.at(end + (count - 1) * DAY + DAY / 2)
  }

  #date(time: number): string {
    return this.#format.format(time)
  }
}

/** The first whole second above `low`, and at most `high`, from which a condition holds. */
function firstSecond(low: number, high: number, holds: (time: number) => boolean): number {
  let before = Math.floor(low / SECOND)
  let after = Math.ceil(high / SECOND)
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2)
    if (holds(middle * SECOND)) after = middle
    else before = middle
  }
  return after * SECOND
}
