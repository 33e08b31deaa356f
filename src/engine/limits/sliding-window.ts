import {
  addGrant,
  collapse,
  emptyLog,
  removeGrant,
  timeAfter,
  timeBeforeNewest,
  timeOfPermit,
  totalAt,
  type GrantLog,
} from './grant-log.js'
import type { Window } from './window.js'

/** The resolution of a log. */
export interface Grains {
  /** Up to this limit, each grant has an entry of its own. */
  readonly maxExact: number
  /** Above it, grants within this part of the window share an entry. */
  readonly parts: number
  /**
   * Whether grants come in the order of their times. After the clock was set back, they wait until it has caught up.
   */
  readonly inOrder: boolean
}

/** Default resolution, for a log in this process. */
const FINE: Grains = { maxExact: 10_000, parts: 1024, inOrder: true }

/**
 * At most `limit` permits in any interval of length `per`: a permit returns `per` after its grant. That is the earliest
 * schedule that keeps the bound, so no capacity is wasted.
 *
 * Memory: 16 bytes for each grant within the window; for limits above ten thousand about 16 kB, independent of the
 * limit. Above that, permits that are granted within a 1024th of the window return together, with the last of them.
 * That keeps the bound, and costs up to a thousandth of the rate. A caller that stores the log elsewhere can choose a
 * coarser one.
 */
export class SlidingWindow implements Window<GrantLog> {
  readonly kind: Window['kind'] = 'sliding'
  readonly wall = false
  readonly #memory: number
  readonly #grain: number
  readonly #grains: Grains

  /**
   * @param jitter by how much the latencies of two calls can differ: milliseconds by which permits count for longer.
   */
  constructor(
    readonly limit: number,
    readonly per: number,
    jitter: number,
    grains = FINE,
  ) {
    this.#grains = grains
    this.#memory = per + jitter
    this.#grain = limit > grains.maxExact ? this.#memory / grains.parts : 0
  }

  empty(): GrantLog {
    return emptyLog()
  }

  allows(log: GrantLog, now: number, n: number, ahead: number): boolean {
    const wanted = n + ahead
    // The number of permits, counted from the beginning, that must have left the window.
    const expired = log.total + wanted - this.limit
    if (this.#grains.inOrder && now < log.lastAt) return false
    return (
      expired <= log.dropped ||
      (wanted <= this.limit && now >= addRoundedUp(timeOfPermit(log, expired), this.#memory))
    )
  }

  readyAt(log: GrantLog, now: number, n: number, ahead: number, lead = 0): number {
    const { limit } = this
    const wanted = n + ahead
    if (wanted <= limit) {
      const time = timeOfPermit(log, log.total + wanted - limit)
      const from = this.#grains.inOrder ? Math.max(now, log.lastAt) : now
      return Math.max(from, addRoundedUp(time, this.#memory))
    }
    // Under constant demand, each permit follows the one `limit` before it by one window.
    const windows = Math.ceil(wanted / limit) - 1
    return this.readyAt(log, now, wanted - windows * limit, 0) + windows * (this.#memory + lead)
  }

  take(log: GrantLog, n: number, at: number, _late: number, now = at): void {
    addGrant(log, n, at, this.#memory, this.#grain, now)
  }

  note(log: GrantLog, n: number, at: number, now: number): void {
    // There may be more exact entries than the limit if others exceed it.
    addGrant(log, n, at, this.#memory, this.#memory / this.#grains.parts, now)
  }

  refund(log: GrantLog, n: number, at: number): void {
    removeGrant(log, n, at)
  }

  isNewest(log: GrantLog, at: number): boolean {
    return at > timeBeforeNewest(log)
  }

  used(log: GrantLog, now: number): number {
    return log.total - totalAt(log, now - this.#memory)
  }

  returnsAt(log: GrantLog, now: number): number {
    const time = timeAfter(log, now - this.#memory)
    return time === undefined ? now : Math.max(now, addRoundedUp(time, this.#memory))
  }

  forgottenAt(log: GrantLog): number {
    return addRoundedUp(log.lastAt, this.#memory)
  }

  rebase(log: GrantLog, now: number): void {
    collapse(log, now)
  }
}

/** The smallest relative increase of a double. */
const STEP = 2 ** -52

/**
 * Returns `time + duration`, never rounded down: a permit that returns too early by a rounding error would be one too
 * many in some window.
 */
export function addRoundedUp(time: number, duration: number): number {
  const sum = time + duration
  // The exact rounding error of the addition (Knuth, The Art of Computer Programming 2, 4.2.2, theorem B).
  const added = sum - time
  const lost = time - (sum - added) + (duration - added)
  return lost > 0 ? sum + Math.abs(sum) * STEP : sum
}
