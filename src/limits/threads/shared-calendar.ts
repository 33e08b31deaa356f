import { MIN_DELAY } from '../../base/waiters.js'
import type { Period } from '../../engine/limits/calendar-periods.js'
import type { CalendarWindow } from '../../engine/limits/calendar-window.js'
import type { SharedRing } from './shared-ring.js'
import { SharedWindow, type SharedUse } from './shared-window.js'
import { numberOf, taggedWord, tagOf, TAGS } from './tagged-word.js'
import type { Times } from '../times.js'

/**
 * Words: the number and the beginning of the current period, and the ends of this period and of the next or the
 * previous one.
 */
const BEGUN = 0
const ENDS = 1

/** A period that the threads have begun. */
interface BegunPeriod extends Period {
  readonly word: bigint
  /** Clock time. Permits granted before do not count in the period. */
  readonly since: number
}

/**
 * At most `limit` permits in each period of the wall clock: the grant `limit` before must be from before the period.
 * Grants have times of the monotonic clock, so the threads agree on such a time as the beginning of each period. The
 * first thread that finds by the wall clock that the last period is over reads the monotonic clock and stores that
 * time. No permit of the new period is granted before. A thread that has claimed grants reads the wall clock again
 * after they are stamped. It returns the grants if their period is over by then.
 *
 * So all grants of a period have times not before its beginning, and are counted until it ends. Grants of the previous
 * period that are stamped after this beginning are counted, too; they are rare.
 *
 * Periods are numbered. A period begins in two steps. The first thread writes the end of the period into the word that
 * the period before the last no longer needs. It then writes the number and the beginning into one word, which all
 * threads use. If that thread does not do the second step, another thread does it.
 */
export class SharedCalendar extends SharedWindow {
  readonly #window: CalendarWindow
  readonly #times: Times
  readonly #words: BigInt64Array
  #period: BegunPeriod | undefined
  /** The wall-clock time at the last `look`. */
  #wall = 0
  #now = 0

  /** @param words three words of shared memory, initially zero. */
  constructor(window: CalendarWindow, times: Times, ring: SharedRing, words: BigInt64Array) {
    super(window.limit, ring)
    this.#window = window
    this.#times = times
    this.#words = words
  }

  override look(_head: number, now: number): void {
    const { per } = this.#window
    this.#now = now
    while (true) {
      const period = this.#current()
      // Read after the period. The clock had shown a time in the period before, so if it now shows one far before the
      // period, it was set back.
      const wall = (this.#wall = this.#times.wallNow())
      // After a smaller step, callers wait until the period ends.
      const isSetBack = period.end - wall > 2 * per
      if (wall < period.end && !isSetBack) return
      this.#begin(period, isSetBack)
    }
  }

  readyAt(head: number, now: number, wanted: number, _others: number): number {
    const period = this.#period!
    const windows = this.windowsBefore(wanted)
    // A grant that is not written yet counts in this period, even if this thread read the clock before it began.
    const present = Math.max(now, period.since)
    const time = this.ring.timeAtHead(this.grantBefore(head, wanted, windows), head, present)
    // At the end of the period, within the jitter, permits go into the next period, as if this one were full.
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
    const { count } = this.ring.recent(head, this.limit, Math.max(now, since), time => time >= since)
    return { used: count, resetIn: count === 0 ? 0 : end - this.#wall }
  }

  countsFrom(): number {
    return this.#current().since
  }

  /** @param wall a future time of the wall clock. */
  #clockTime(wall: number): number {
    return this.#now + Math.max(wall - this.#wall, MIN_DELAY)
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
        since: stored % 2 === USED_UP ? -Infinity : this.ring.timeAt(numberOf(word)),
      })
    }
  }

  /**
   * Begins the next period.
   * @param isSetBack whether the clock was set back. Then the period that it shows now counts as used up, because its
   * earlier grants are not known.
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
    // The clock is read here: grants of the new period are stamped later, and those of the last one mostly earlier.
    const { ring } = this
    const since = taggedWord(number, ring.ticks(this.#times.now()))
    Atomics.compareExchange(words, BEGUN, word, since)
  }
}

/** A flag stored with the end of a period: all grants in the ring count in it, so the limit is used up. */
const USED_UP = 1
