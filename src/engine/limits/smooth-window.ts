import { newestGrant, type GrantLog } from './grant-log.js'
import { SlidingWindow, type Grains } from './sliding-window.js'
import type { Window } from './window.js'

/** Added to the interval, so that rounding never makes `limit` intervals shorter than the window. */
const ROUNDING = 1 + 2 ** -50

/** The interval between evenly spaced permits, in milliseconds. @param memory how long a permit counts. */
export function intervalOf(limit: number, memory: number): number {
  return (memory / limit) * ROUNDING
}

/** The state of even spacing. */
export interface Spacing {
  /** When the next permit may come. */
  openAt: number
  readonly log: GrantLog
}

/**
 * Evenly spaced permits, `per / limit` apart: the next one is available `n` intervals after `n` permits. The bound of
 * the sliding window applies too, because permits that are granted together are not evenly spaced.
 */
export class SmoothWindow implements Window<Spacing> {
  readonly kind = 'smooth'
  readonly wall = false
  readonly #sliding: SlidingWindow
  readonly #interval: number
  readonly #jitter: number

  /** @param jitter by how much the latencies of two calls can differ: milliseconds by which the window is longer. */
  constructor(
    readonly limit: number,
    readonly per: number,
    jitter: number,
    grains?: Grains,
  ) {
    this.#jitter = jitter
    this.#sliding = new SlidingWindow(limit, per, jitter, grains)
    this.#interval = intervalOf(limit, per + jitter)
  }

  empty(): Spacing {
    return { openAt: -Infinity, log: this.#sliding.empty() }
  }

  allows({ openAt, log }: Spacing, now: number, n: number, ahead: number): boolean {
    return now >= openAt + ahead * this.#interval && this.#sliding.allows(log, now, n, ahead)
  }

  readyAt({ openAt, log }: Spacing, now: number, n: number, ahead: number, lead = 0): number {
    const spaced = Math.max(now, openAt) + ahead * this.#intervalWith(lead)
    return Math.max(spaced, this.#sliding.readyAt(log, now, n, ahead, lead))
  }

  take(spacing: Spacing, n: number, at: number, late: number, now = at, lead = 0): void {
    spacing.openAt = Math.max(spacing.openAt, at - late - lead) + n * this.#intervalWith(lead)
    this.#sliding.take(spacing.log, n, at, late, now)
  }

  takeOver(spacing: Spacing): void {
    const newest = newestGrant(spacing.log, this.limit)
    spacing.openAt = newest.at + Math.min(newest.n, this.limit) * this.#interval
  }

  note({ log }: Spacing, n: number, at: number, now: number): void {
    this.#sliding.note(log, n, at, now)
  }

  /**
   * Also moves the time of the next permit, so that the pace is even again over several permits: back at most to the
   * newest permit, forward at most by a window.
   */
  settle(spacing: Spacing, change: number, at: number, now: number): void {
    const { log, openAt } = spacing
    const most = now + this.per + this.#jitter
    if (change > 0) {
      this.#sliding.note(log, change, now, now)
      const next = Math.max(openAt, now) + change * this.#interval
      spacing.openAt = Math.max(openAt, Math.min(next, most))
    } else {
      this.#sliding.refund(log, -change, at)
      spacing.openAt = Math.min(openAt, Math.max(openAt + change * this.#interval, log.lastAt))
    }
  }

  /** Permits that can be used for longer also count for longer, with the same spacing. */
  #intervalWith(lead: number): number {
    return lead === 0 ? this.#interval : intervalOf(this.limit, this.per + this.#jitter + lead)
  }

  refund(spacing: Spacing, n: number, at: number): void {
    this.#sliding.refund(spacing.log, n, at)
    // Permits that were spaced after it keep their times. Dropped grants are only known to be as many as the limit.
    const newest = newestGrant(spacing.log, this.limit)
    spacing.openAt = Math.min(spacing.openAt, newest.at + newest.n * this.#interval)
  }

  isNewest({ log }: Spacing, at: number): boolean {
    return this.#sliding.isNewest(log, at)
  }

  used({ log }: Spacing, now: number): number {
    return this.#sliding.used(log, now)
  }

  returnsAt({ openAt }: Spacing, now: number): number {
    return Math.max(now, openAt)
  }

  forgottenAt({ openAt, log }: Spacing): number {
    return Math.max(openAt, this.#sliding.forgottenAt(log))
  }

  rebase(spacing: Spacing, now: number): void {
    this.#sliding.rebase(spacing.log, now)
    spacing.openAt = Math.min(spacing.openAt, now + this.per)
  }
}
