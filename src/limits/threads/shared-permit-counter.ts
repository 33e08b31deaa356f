import { CalendarWindow } from '../../engine/limits/calendar-window.js'
import { SharedCalendar } from './shared-calendar.js'
import { SharedRing } from './shared-ring.js'
import { SharedSmooth } from './shared-smooth.js'
import { SharedSliding, type SharedWindow } from './shared-window.js'
import type { Cost } from '../../engine/limits/cost.js'
import type { Explained } from '../../engine/limits/reservation.js'
import type { Counter, Rules, Taken } from '../counter.js'
import { MAX_ROUNDS } from '../local/permit-counter.js'
import type { ThreadTurns } from './thread-turns.js'
import type { Times } from '../times.js'

/**
 * Maximum time for which a thread may leave available permits before other threads continue without it, in
 * milliseconds.
 */
const PATIENCE = 150
/** Time between two checks for such permits, in milliseconds. */
const LOOK_AGAIN = PATIENCE + 70

/** Number of words in shared memory for each limit, in addition to the ring. */
const WORDS = 3
/** Size of these words for a number of limits, in bytes. */
export function notesBytes(limits: number): number {
  return limits * WORDS * BigInt64Array.BYTES_PER_ELEMENT
}

/** Counts the permits of several threads by a ring in shared memory. */
export class SharedPermitCounter implements Counter {
  readonly running = 0
  readonly full = false
  readonly blank = false
  /** The number of the first grant of the last take. */
  mark = 0
  readonly #rules: Rules
  readonly #times: Times
  readonly #ring: SharedRing
  readonly #turns: ThreadTurns
  readonly #windows: readonly SharedWindow[]

  /**
   * @param jitter milliseconds.
   * @param ring made by `SharedRing.memory`.
   * @param notes shared memory of `notesBytes`, initially zero.
   */
  constructor(
    rules: Rules,
    jitter: number,
    times: Times,
    ring: SharedArrayBuffer,
    notes: SharedArrayBuffer,
    turns: ThreadTurns,
  ) {
    this.#rules = rules
    this.#times = times
    this.#turns = turns
    const { windows } = rules
    const longest = Math.max(...windows.map(({ per }) => per + jitter))
    const shared = (this.#ring = new SharedRing(ring, Math.min(longest, PATIENCE)))
    this.#windows = windows.map((window, index) => {
      const words = new BigInt64Array(notes, notesBytes(index), WORDS)
      if (window instanceof CalendarWindow) return new SharedCalendar(window, times, shared, words)
      const memory = window.per + jitter
      return window.kind === 'smooth'
        ? new SharedSmooth(window.limit, memory, shared, words)
        : new SharedSliding(window.limit, memory, shared)
    })
  }

  get paused(): boolean {
    return this.#times.now() < this.#ring.pausedUntil
  }

  take({ n }: Cost, { n: ahead }: Cost, _callers: number, late: number, arrival: number): number {
    const ring = this.#ring
    while (true) {
      // In this order: see the proof at the ring.
      const { head } = ring
      const now = this.#times.now()
      if (now < ring.pausedUntil) return NaN
      const own = n + ahead
      const wanted = own + this.#turns.before(arrival)
      const isUntaken = wanted > own && this.#isUntaken(head, now, n, own)
      if (isUntaken && this.#turns.removeStalled(arrival, PATIENCE)) continue
      if (this.#readyFrom(head, now, n, wanted) > now) {
        // The entries before an earlier head may be overwritten.
        if (ring.head !== head) continue
        const yields = arrival !== 0 && wanted > own && this.#readyFrom(head, now, n, own) <= now
        if (yields) this.#turns.yield()
        return NaN
      }
      if (!ring.claim(head, n)) continue
      const time = this.#times.now()
      if (!ring.stamp(head, n, time)) continue
      if (!this.#note(head, n, time, late)) continue
      this.mark = head
      return time
    }
  }

  refund({ cost: { n }, at, mark }: Pick<Taken, 'cost' | 'at' | 'mark'>): void {
    const now = this.#times.now()
    const old = this.#windows.reduce((time, window) => Math.min(time, window.countsFrom(now)), now)
    this.#ring.refund(mark, n, at, old)
    this.#turns.notify()
  }

  pauseUntil(time: number): void {
    this.#ring.pauseUntil(time)
    this.#turns.notify()
  }

  resume(): void {
    this.#ring.resume(this.#times.now())
    this.#turns.notify()
  }

  readyAt(cost: Cost, others: Cost, arrival: number): number {
    const { n } = cost
    // The head before the clock: see the proof at the ring.
    const { head, pausedUntil } = this.#ring
    const now = this.#times.now()
    const own = n + others.n
    const before = this.#turns.before(arrival)
    const turn = this.#readyFrom(head, now, n, own + before)
    if (arrival === 0 && before > 0 && this.#isUntaken(head, now, n, own)) {
      // It is not known whether the earlier threads still exist.
      if (this.#turns.removeStalled(arrival, PATIENCE)) return this.readyAt(cost, others, arrival)
      return this.#openFrom(Math.max(now + LOOK_AGAIN, pausedUntil))
    }
    if (arrival === 0 || before === 0) return this.#openFrom(Math.max(now, pausedUntil, turn))
    // There may be fewer earlier waiters than this thread can know. Their threads report when they have taken the
    // permits that they can.
    const soonest = this.#readyFrom(head, now, n, own + this.#turns.leastBefore(arrival))
    // If earlier waiters do not take their permits, some thread must notice.
    const look = Math.max(this.#readyFrom(head, now, n, own), now) + LOOK_AGAIN
    return this.#openFrom(Math.max(now, pausedUntil, Math.min(soonest > now ? soonest : turn, look)))
  }

  explain(cost: Cost, others: Cost): Explained {
    const { n: ahead } = others
    const { head } = this.#ring
    const now = this.#times.now()
    const turns = this.#windows.map(window => {
      window.look(head, now)
      return window.readyAt(head, now, cost.n + ahead, ahead)
    })
    const latest = Math.max(...turns)
    const reports = this.#windows.map((window, index) => {
      const { used, resetIn } = window.use(head, now)
      const { limit, per, kind } = this.#rules.windows[index]!
      return { limit, per, window: kind, remaining: limit - used, resetIn }
    })
    const binding = latest > now ? turns.indexOf(latest) : undefined
    return { ready: this.readyAt(cost, others, 0), binding, reports }
  }

  /** Whether permits have been available for long enough that earlier waiters could have taken them. */
  #isUntaken(head: number, now: number, n: number, own: number): boolean {
    return now >= this.#ring.pausedUntil + PATIENCE && this.#readyFrom(head, now, n, own) <= now - PATIENCE
  }

  /**
   * Returns the clock time from which the next `n` permits can be claimed, after all earlier ones, `wanted` in total.
   */
  #readyFrom(head: number, now: number, n: number, wanted: number): number {
    let ready = -Infinity
    for (const window of this.#windows) {
      window.look(head, now)
      // After a refund, a later one can return sooner. From the first to the last: see the proof at the ring.
      for (let own = 1; own <= n && own < wanted; own++) {
        ready = Math.max(ready, window.readyAt(head, now, own, 0))
      }
      ready = Math.max(ready, window.readyAt(head, now, wanted, wanted - n))
    }
    return ready
  }

  /**
   * Returns the first time, `time` or later, at which all rules can grant permits. Repeats the search, because a later
   * time can be in another period of a calendar.
   */
  #openFrom(time: number): number {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const next = this.#windows.reduce((from, window) => window.openFrom(from), time)
      if (next === time) break
      time = next
    }
    return time
  }

  /** Grants claimed and stamped permits, or returns them if the rules no longer allow them. */
  #note(head: number, n: number, time: number, late: number): boolean {
    // One reading of the clock, so that all rules are checked at the same moment.
    const wall = this.#times.wallNow()
    if (this.#windows.every(window => window.holds(wall))) {
      for (const window of this.#windows) window.given(head, n, time, late)
      return true
    }
    this.refund({ cost: { n }, at: time, mark: head })
    return false
  }
}
