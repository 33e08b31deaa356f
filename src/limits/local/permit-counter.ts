import type { Counter, Rules, Taken } from '../counter.js'
import { limitReport, type LimitReport } from '../../engine/limits/window.js'
import type { Times } from '../times.js'

/** Maximum number of rounds in the search for a time that keeps all limits. The queue checks again anyway. */
export const MAX_ROUNDS = 8

/**
 * Counts granted permits under several limits that apply together, and decides whether more are available now. Decides
 * within the call, and sets no timer.
 */
export class PermitCounter implements Counter {
  readonly #rules: Rules
  readonly #times: Times
  /** By window. */
  readonly #states: readonly unknown[]
  #epoch: number
  /** Clock time. */
  #pausedUntil = -Infinity
  #running = 0
  /** The part of a permit in `#running`: 0 without a `concurrency`. */
  readonly #counted: 0 | 1
  #takenAtWall = 0

  constructor(rules: Rules, times: Times) {
    this.#rules = rules
    this.#times = times
    this.#states = rules.windows.map(window => window.empty())
    this.#epoch = times.epoch
    this.#counted = rules.concurrency === Infinity ? 0 : 1
  }

  get maxPermits(): number {
    return Math.min(...this.#rules.windows.map(({ limit }) => limit))
  }

  get running(): number {
    return this.#running
  }

  get full(): boolean {
    return this.#running >= this.#rules.concurrency
  }

  get paused(): boolean {
    return this.#times.now() < this.#pausedUntil
  }

  /** The wall-clock time of the last take. */
  get mark(): number {
    return this.#takenAtWall
  }

  take(n: number, ahead: number, callers: number, late: number): number {
    const { windows } = this.#rules
    const times = this.#times
    const now = this.#now()
    if (now < this.#pausedUntil || this.#running + callers >= this.#rules.concurrency) return NaN
    const wall = (this.#takenAtWall = times.wallNow())
    // Most limiters have one limit, and this is called a million times a second, so it avoids a loop.
    if (this.#states.length > 1 && !this.#othersAllow(n, ahead, now, wall)) return NaN
    const window = windows[0]!
    const time = window.wall ? wall : now
    if (!window.allows(this.#states[0], time, n, ahead)) return NaN
    window.take(this.#states[0], n, time, late)
    if (this.#states.length > 1) this.#takeOthers(n, now, wall, late)
    this.#running += this.#counted
    return now
  }

  release(): void {
    this.#running -= this.#counted
  }

  refund({ n, at, mark: wallAt, epoch }: Taken): void {
    this.#now()
    // After a clock was set back, the permit can't be found by its time.
    if (epoch !== this.#times.epoch) return
    this.#rules.windows.forEach((window, index) =>
      window.refund(this.#states[index], n, window.wall ? wallAt : at),
    )
  }

  pauseUntil(wall: number): void {
    this.#now()
    this.#pausedUntil = Math.max(this.#pausedUntil, this.#times.fromWall(wall))
  }

  limitsChanged(): void {
    this.#rules.windows.forEach((window, index) => window.takeOver?.(this.#states[index]))
  }

  resume(): void {
    this.#pausedUntil = -Infinity
  }

  readyAt(n: number, ahead: number): number {
    let time = this.#readyFrom(Math.max(this.#now(), this.#pausedUntil), n, ahead)
    // A later time can be in another period of a calendar.
    for (let round = 0; round < MAX_ROUNDS && this.#states.length > 1; round++) {
      const next = this.#readyFrom(time, n, 0)
      if (next === time) break
      time = next
    }
    return time
  }

  binding(n: number, ahead: number): number | undefined {
    const now = this.#now()
    const wall = this.#times.wallNow()
    let longest = 0
    let binding
    this.#rules.windows.forEach((window, index) => {
      const time = window.wall ? wall : now
      const wait = window.readyAt(this.#states[index], time, n, ahead) - time
      if (wait > longest) [longest, binding] = [wait, index]
    })
    return binding
  }

  reports(): LimitReport[] {
    const now = this.#now()
    const wall = this.#times.wallNow()
    return this.#rules.windows.map((window, index) =>
      limitReport(window, this.#states[index], window.wall ? wall : now),
    )
  }

  get blank(): boolean {
    const now = this.#now()
    const wall = this.#times.wallNow()
    return (
      this.#running === 0 &&
      now >= this.#pausedUntil &&
      this.#rules.windows.every(
        (window, index) => window.forgottenAt(this.#states[index]) <= (window.wall ? wall : now),
      )
    )
  }

  /** Reads the clock, and detects whether it was set back. */
  #now(): number {
    const now = this.#times.now()
    if (this.#times.epoch !== this.#epoch) this.#setBack(now)
    return now
  }

  /** Returns the clock time at which all limits are ready, each by itself from the same time on. */
  #readyFrom(from: number, n: number, ahead: number): number {
    // Both clocks advance alike from here on.
    const offset = this.#times.wallNow() - this.#times.now()
    return this.#rules.windows.reduce((time, window, index) => {
      const state = this.#states[index]
      if (!window.wall) return Math.max(time, window.readyAt(state, from, n, ahead))
      return Math.max(time, window.readyAt(state, from + offset, n, ahead) - offset)
    }, from)
  }

  #othersAllow(n: number, ahead: number, now: number, wall: number): boolean {
    const { windows } = this.#rules
    for (let index = 1; index < windows.length; index++) {
      const window = windows[index]!
      if (!window.allows(this.#states[index], window.wall ? wall : now, n, ahead)) return false
    }
    return true
  }

  #takeOthers(n: number, now: number, wall: number, late: number): void {
    const { windows } = this.#rules
    for (let index = 1; index < windows.length; index++) {
      const window = windows[index]!
      window.take(this.#states[index], n, window.wall ? wall : now, late)
    }
  }

  #setBack(now: number): void {
    const wall = this.#times.wallNow()
    this.#epoch = this.#times.epoch
    this.#rules.windows.forEach((window, index) => {
      const state = this.#states[index]
      const time = window.wall ? wall : now
      // Grants that appear to be slightly in the future delay others no longer than the limit does anyway.
      const isFar = window.forgottenAt(state) > time + 2 * window.per
      if (isFar) window.rebase(state, time)
    })
  }
}
