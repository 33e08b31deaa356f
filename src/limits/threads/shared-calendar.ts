import type { Period } from '../../engine/limits/calendar-periods.js'
import type { CalendarWindow } from '../../engine/limits/calendar-window.js'
import type { RingReader } from './ring-reader.js'
import { SharedWindow, type SharedUse } from './shared-window.js'
import { numberOf, taggedWord, tagOf, TAGS } from './tagged-word.js'
import type { Times } from '../local/times.js'

/** Words: when the period began, and when it and the other one of two that follow each other end. */
const BEGUN = 0
const ENDS = 1

/** A shorter wait could be lost in rounding, in milliseconds. */
const MIN_WAIT = 0.001

/** A period as the threads have begun it. */
interface BegunPeriod extends Period {
  readonly word: bigint
  /** Clock time: permits given before do not count in it. */
  readonly since: number
}

/**
 * At most `limit` permits in each period of the wall clock: the grant `limit` before must be from before the period.
 * Grants have times of the monotonic clock, so the threads agree for each period on such a time at which it begins. The
 * first thread to see by the wall clock that the last period is over reads the clock and writes that time down. Only
 * then is anything given in the new period. A thread that has claimed grants looks at the wall clock again after they
 * are stamped. It gives them back if the period for which they were judged is over.
 *
 * So all grants of a period have times not before its beginning, and are counted as long as it lasts. Grants of the
 * period before that are stamped after its beginning are counted, too; they are rare.
 *
 * Periods are numbered. A period begins in two steps. The first thread writes its end into the word that the period
 * before the last does not need any more, and then its number and beginning into one word, which all threads use. If
 * that thread does not come to the second step, another thread does it.
 */
export class SharedCalendar extends SharedWindow {
  readonly #window: CalendarWindow
  readonly #times: Times
  readonly #words: BigInt64Array
  #period: BegunPeriod | undefined
  /** The wall clock at the last look. */
  #wall = 0
  #now = 0

  /** @param words of shared memory: three, zero at first. */
  constructor(window: CalendarWindow, times: Times, reader: RingReader, words: BigInt64Array) {
    super(window.limit, reader)
    this.#window = window
    this.#times = times
    this.#words = words
  }

  override look(_head: number, now: number): void {
    const { per } = this.#window
    this.#now = now
    while (true) {
      const period = this.#current()
      // Read after the period: what it shows was seen before, so a time far before that comes from a clock that was set
      // back.
      const wall = (this.#wall = this.#times.wallNow())
      // A smaller difference is waited for.
      const isSetBack = period.end - wall > 2 * per
      if (wall < period.end && !isSetBack) return
      this.#begin(period, isSetBack)
    }
  }

  readyAt(head: number, now: number, wanted: number, _others: number): number {
    const period = this.#period!
    const windows = this.windowsBefore(wanted)
    // A grant that is not written yet is of this period, even where this thread read the clock before the period began.
    const present = Math.max(now, period.since)
    const time = this.reader.timeOf(this.grantBefore(head, wanted, windows), head, present)
    // Permits that do not fit before the guard at the end go into the next period as if this one were full.
    const fits = time < period.since && this.#wall < period.end - this.#window.jitter
    const later = windows + (fits ? 0 : 1)
    if (later === 0) {
      return this.#wall < period.start ? this.#clockTime(period.start) : Math.min(period.since, now)
    }
    return this.#clockTime(later === 1 ? period.end : this.#window.periods.after(period, later).start)
  }

  override openFrom(time: number): number {
    const wall = this.#wall + (time - this.#now)
    const { end } = wall < this.#period!.end ? this.#period! : this.#window.periods.at(wall)
    return wall < end - this.#window.jitter ? time : this.#clockTime(end)
  }

  override holds(wall: number): boolean {
    const { start, end } = this.#period!
    return wall >= start && wall < end - this.#window.jitter
  }

  use(head: number, now: number): SharedUse {
    const { since, end } = this.#period!
    const { count } = this.reader.recent(head, this.limit, Math.max(now, since), time => time >= since)
    return { used: count, resetIn: count === 0 ? 0 : end - this.#wall }
  }

  countsFrom(): number {
    return this.#current().since
  }

  /** @param wall a time of the wall clock that is still to come. */
  #clockTime(wall: number): number {
    return this.#now + Math.max(wall - this.#wall, MIN_WAIT)
  }

  #current(): BegunPeriod {
    const words = this.#words
    while (true) {
      const word = Atomics.load(words, BEGUN)
      if (this.#period?.word === word) return this.#period
      const stored = numberOf(Atomics.load(words, ENDS + (tagOf(word) & 1)))
      // Otherwise it may be the end of a later period.
      if (Atomics.load(words, BEGUN) !== word) continue
      const end = Math.floor(stored / 2)
      return (this.#period = {
        word,
        start: this.#window.periods.at(end - 1).start,
        end,
        since: stored % 2 === USED_UP ? -Infinity : this.reader.ring.timeAt(numberOf(word)),
      })
    }
  }

  /**
   * @param isSetBack counts the period that the clock shows now as used up, because what was given in it is not known.
   */
  #begin({ word }: BegunPeriod, isSetBack: boolean): void {
    const words = this.#words
    const number = (tagOf(word) + 1) % TAGS
    const place = ENDS + (number & 1)
    const before = Atomics.load(words, place)
    if (Atomics.load(words, BEGUN) !== word) return
    if (tagOf(before) !== number) {
      const { end } = this.#window.periods.at(this.#wall)
      const stored = 2 * end + (isSetBack ? USED_UP : 0)
      Atomics.compareExchange(words, place, before, taggedWord(number, stored))
    }
    // Read here: grants of the period are stamped later, those of the last one mostly sooner.
    const { ring } = this.reader
    const since = taggedWord(number, ring.ticks(this.#times.now()))
    Atomics.compareExchange(words, BEGUN, word, since)
  }
}

/** A flag next to the end of a period: everything counts in it, and more. */
const USED_UP = 1
