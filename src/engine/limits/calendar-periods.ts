/** A period of the wall clock: milliseconds since 1970, without its end. */
export interface Period {
  readonly start: number
  readonly end: number
}

const SECOND = 1000
export const DAY = 86_400_000
/** Maximum length of a local day, in milliseconds. */
const MAX_DAY_LENGTH = 50 * 3_600_000

/** Divides the wall clock into periods. */
export interface CalendarPeriods {
  at(time: number): Period
  /** Returns the period that is `count` periods after another; `count` is at least 1. */
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

/** The days of a time zone, which have 23 or 25 hours when daylight saving time begins or ends. */
export class ZoneDays implements CalendarPeriods {
  readonly #format: Intl.DateTimeFormat

  constructor(timeZone: string) {
    // A locale whose dates sort in the order of the days.
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
    // Clocks change at whole seconds. If the hour after midnight is skipped, the day begins at one o'clock.
    return {
      start: firstSecond(time - MAX_DAY_LENGTH, time, second => this.#date(second) >= date),
      end: firstSecond(time, time + MAX_DAY_LENGTH, second => this.#date(second) > date),
    }
  }

  after({ end }: Period, count: number): Period {
    // Noon is in the same day even if clocks change.
    return this.at(end + (count - 1) * DAY + DAY / 2)
  }

  #date(time: number): string {
    return this.#format.format(time)
  }
}

/** Returns the first whole second after `low`, up to `high`, from which a condition holds. */
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
