import type { Counter, Rules, Taken } from '../counter.js'
import { amountOf, NOTHING, type Cost } from '../../engine/limits/cost.js'
import type { Explained } from '../../engine/limits/reservation.js'
import { limitReport, settle, type Window } from '../../engine/limits/window.js'
import type { Times } from '../times.js'

/** Maximum number of rounds in the search for a time that keeps all limits. The queue checks again anyway. */
export const MAX_ROUNDS = 8

/** A limit with its state, and the time of its clock. */
interface TimedLimit {
  readonly window: Window
  /** The place of its unit. */
  readonly place: number
  readonly state: unknown
  readonly time: number
}

/**
 * Counts granted permits under several limits that apply together, and decides whether more are available now. Decides
 * within the call, and sets no timer.
 */
export class PermitCounter implements Counter {
  readonly #rules: Rules
  readonly #times: Times
  /** Those by which it counts. */
  #windows: readonly Window[]
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
    this.#windows = rules.windows
    this.#states = rules.windows.map(window => window.empty())
    this.#epoch = times.epoch
    this.#counted = rules.concurrency === Infinity ? 0 : 1
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

  take(cost: Cost, ahead: Cost, callers: number, late: number): number {
    const { windows, places } = this.#rules
    const { n, amounts } = cost
    const { n: callsAhead } = ahead
    const times = this.#times
    const now = this.#now()
    if (now < this.#pausedUntil || this.#running + callers >= this.#rules.concurrency) return NaN
    const wall = (this.#takenAtWall = times.wallNow())
    // This is called a million times a second, so the loops create no iterators.
    for (let index = 0; index < windows.length; index++) {
      const window = windows[index]!
      const time = window.wall ? wall : now
      const amount = amounts === undefined ? n : amountOf(cost, places[index]!)
      const others = amounts === undefined ? callsAhead : amountOf(ahead, places[index]!)
      if (!window.allows(this.#states[index], time, amount, others)) return NaN
    }
    for (let index = 0; index < windows.length; index++) {
      const window = windows[index]!
      const amount = amounts === undefined ? n : amountOf(cost, places[index]!)
      if (amount > 0) window.take(this.#states[index], amount, window.wall ? wall : now, late)
    }
    this.#running += this.#counted
    return now
  }

  release(): void {
    this.#running -= this.#counted
  }

  refund({ cost, at, mark: wallAt, epoch }: Taken): void {
    // After a clock was set back, the permit can't be found by its time.
    if (epoch !== this.#epochNow()) return
    for (const { window, place, state } of this.#limits())
      window.refund(state, amountOf(cost, place), window.wall ? wallAt : at)
  }

  settle({ at, mark: wallAt, epoch }: Taken, change: readonly number[]): void {
    const isKnown = epoch === this.#epochNow()
    for (const { window, place, state, time } of this.#limits()) {
      const amount = amountOf({ n: 0, amounts: change }, place)
      if (amount > 0 || (amount < 0 && isKnown))
        settle(window, state, amount, window.wall ? wallAt : at, time)
    }
  }

  pauseUntil(time: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, time)
  }

  limitsChanged(): void {
    const { windows } = this.#rules
    for (const [index, window] of windows.entries())
      if (window !== this.#windows[index]) window.takeOver?.(this.#states[index])
    this.#windows = windows
  }

  resume(): void {
    this.#pausedUntil = -Infinity
  }

  readyAt(cost: Cost, ahead: Cost): number {
    let time = this.#readyFrom(Math.max(this.#now(), this.#pausedUntil), cost, ahead)
    // A later time can be in another period of a calendar.
    for (let round = 0; round < MAX_ROUNDS && this.#states.length > 1; round++) {
      const next = this.#readyFrom(time, cost, NOTHING)
      if (next === time) break
      time = next
    }
    return time
  }

  explain(cost: Cost, ahead: Cost): Explained {
    const limits = this.#limits()
    const waits = limits.map(
      ({ window, place, state, time }) =>
        window.readyAt(state, time, amountOf(cost, place), amountOf(ahead, place)) - time,
    )
    const longest = Math.max(...waits)
    return {
      ready: this.readyAt(cost, ahead),
      binding: longest > 0 ? waits.indexOf(longest) : undefined,
      reports: limits.map(({ window, place, state, time }) =>
        limitReport(window, this.#rules.costs.units[place], state, time),
      ),
    }
  }

  get blank(): boolean {
    const isForgotten = ({ window, state, time }: TimedLimit): boolean => window.forgottenAt(state) <= time
    return this.#running === 0 && !this.paused && this.#limits().every(isForgotten)
  }

  #limits(): TimedLimit[] {
    const now = this.#now()
    const wall = this.#times.wallNow()
    return this.#rules.windows.map((window, index) => {
      return {
        window,
        place: this.#rules.places[index]!,
        state: this.#states[index],
        time: window.wall ? wall : now,
      }
    })
  }

  /** Reads the clock, and detects whether it was set back. */
  #now(): number {
    const now = this.#times.now()
    if (this.#times.epoch !== this.#epoch) this.#setBack()
    return now
  }

  /** Returns the clock time at which all limits are ready, each by itself from the same time on. */
  #readyFrom(from: number, cost: Cost, ahead: Cost): number {
    // Both clocks advance alike from here on.
    const offset = this.#times.wallNow() - this.#times.now()
    return this.#rules.windows.reduce((time, window, index) => {
      const place = this.#rules.places[index]!
      const shift = window.wall ? offset : 0
      const [amount, others] = [amountOf(cost, place), amountOf(ahead, place)]
      return Math.max(time, window.readyAt(this.#states[index], from + shift, amount, others) - shift)
    }, from)
  }

  /** Number of times that clocks have been set back until now. */
  #epochNow(): number {
    this.#now()
    return this.#epoch
  }

  #setBack(): void {
    this.#epoch = this.#times.epoch
    for (const { window, state, time } of this.#limits()) {
      // Grants that appear to be slightly in the future delay others no longer than the limit does anyway.
      const isFar = window.forgottenAt(state) > time + 2 * window.per
      if (isFar) window.rebase(state, time)
    }
  }
}
