import { systemClock, type Clock } from '../clock.js'
import type { Definition } from './limit-options.js'
import { SteadyClock } from './steady-clock.js'
import type { Window } from './window.js'

/** One limit at one moment. */
export interface LimitReport {
  readonly limit: number
  /** Milliseconds. */
  readonly per: number
  readonly window: 'sliding' | 'calendar' | 'smooth'
  /** How many permits are left now. */
  readonly remaining: number
  /** Milliseconds until the next permit comes back, for a calendar until the next period; 0 when none is out. */
  readonly resetIn: number
}

/** So many times a turn is put off because of a period that is over by then; the line looks again anyway. */
const MOST_ROUNDS = 8

/** What was taken in one step. */
export interface Taken {
  readonly n: number
  /** Clock time. */
  readonly at: number
  /** Time of the wall clock; 0 where no window reads it. */
  readonly wallAt: number
  readonly epoch: number
}

/**
 * The count of what was given, under several limits that hold together, and whether more can be given now. Decides within
 * the call; sets no timer.
 */
export class Tally {
  /** How many permits may be in use together. */
  readonly concurrency: number
  #windows: Window[]
  readonly #states: readonly unknown[]
  readonly #readWall: () => number
  readonly #clock: SteadyClock
  /** Read only where a window needs it. */
  readonly #wallClock: SteadyClock | undefined
  /** Clock time. */
  #pausedUntil = -Infinity
  #running = 0
  #takenAtWall = 0
  /** Counts how often a clock was set back: what was given before can't be found by its time any more. */
  #epoch = 0

  /** @param readWall milliseconds since 1970. */
  constructor({ windows, concurrency }: Definition, clock: Clock, readWall: () => number) {
    this.concurrency = concurrency
    this.#readWall = readWall
    this.#windows = [...windows]
    this.#states = windows.map(window => window.empty())
    const tolerance = Math.min(...windows.map(({ per }) => per))
    this.#clock = new SteadyClock(clock, tolerance, now => this.#rebase(now, false))
    if (windows.some(({ wall }) => wall)) {
      this.#wallClock = new SteadyClock({ now: readWall }, tolerance, now => this.#rebase(now, true))
    }
  }

  /** Clock time, which never goes back but when the clock was set back by more than the shortest window. */
  now(): number {
    return this.#clock.now()
  }

  /** The wall clock, where a window needs it. */
  wallNow(): number {
    return this.#wallClock === undefined ? 0 : this.#wallClock.now()
  }

  /** The most permits that can be given together. */
  get most(): number {
    return Math.min(...this.#windows.map(({ limit }) => limit))
  }

  /** How many permits are in use; 0 unless `concurrency` limits that. */
  get running(): number {
    return this.#running
  }

  /**
   * Takes `n` permits now, if each limit allows them beside those that stand before.
   * @param ahead how many permits others wait for who come first.
   * @param callers how many these are.
   * @param late by how much a timer may have delayed this: milliseconds.
   * @returns the clock time, or NaN when it takes none.
   */
  take(n: number, ahead: number, callers: number, late: number): number {
    const now = this.#clock.now()
    if (now < this.#pausedUntil || this.#running + callers >= this.concurrency) return NaN
    if (this.#wallClock) this.#takenAtWall = this.#wallClock.now()
    const windows = this.#windows
    for (let index = 0; index < windows.length; index++) {
      const window = windows[index]!
      const time = window.wall ? this.#takenAtWall : now
      if (!window.allows(this.#states[index], time, n, ahead)) return NaN
    }
    for (let index = 0; index < windows.length; index++) {
      const window = windows[index]!
      window.take(this.#states[index], n, window.wall ? this.#takenAtWall : now, late)
    }
    if (this.concurrency !== Infinity) this.#running++
    return now
  }

  /** What the wall clock said at the last take; 0 where no window reads it. */
  get takenAtWall(): number {
    return this.#takenAtWall
  }

  /** Tells refunds of permits from before the clock was set back. */
  get epoch(): number {
    return this.#epoch
  }

  /** Ends the use of what was taken with one `take`. */
  release(): void {
    this.#running--
  }

  /** Takes back permits that were not used. */
  refund({ n, at, wallAt, epoch }: Taken): void {
    if (epoch !== this.#epoch) return
    this.#windows.forEach((window, index) => window.refund(this.#states[index], n, window.wall ? wallAt : at))
  }

  /** Gives nothing before this time of the wall clock. The latest of several counts. */
  pauseUntil(time: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.now() + (time - this.#readWall()))
  }

  /**
   * The earliest clock time at which `n` permits can be had after `ahead` others, as far as time decides it: a permit in
   * use may be released at any time.
   */
  readyAt(n: number, ahead: number): number {
    const now = this.now()
    let time = this.#readyFrom(Math.max(now, this.#pausedUntil), n, ahead)
    // A later time can be too late for a period that was open before.
    for (let round = 0; round < MOST_ROUNDS && this.#windows.length > 1; round++) {
      const next = this.#readyFrom(time, n, 0)
      if (next === time) break
      time = next
    }
    return time
  }

  /** When all limits are ready of which each looks from the same time on. */
  #readyFrom(from: number, n: number, ahead: number): number {
    // Both clocks run on alike from here.
    const offset = this.wallNow() - this.now()
    return this.#windows.reduce((time, window, index) => {
      const state = this.#states[index]
      if (!window.wall) return Math.max(time, window.readyAt(state, from, n, ahead))
      return Math.max(time, window.readyAt(state, from + offset, n, ahead) - offset)
    }, from)
  }

  /** Which limit lets `n` permits wait the longest: an index into `reports()`; undefined when none does. */
  binding(n: number, ahead: number): number | undefined {
    const now = this.now()
    const wall = this.wallNow()
    let longest = 0
    let binding
    this.#windows.forEach((window, index) => {
      const time = window.wall ? wall : now
      const wait = window.readyAt(this.#states[index], time, n, ahead) - time
      if (wait > longest) [longest, binding] = [wait, index]
    })
    return binding
  }

  get paused(): boolean {
    return this.now() < this.#pausedUntil
  }

  reports(): LimitReport[] {
    const now = this.now()
    const wall = this.wallNow()
    return this.#windows.map((window, index) => {
      const { limit, per, kind } = window
      const state = this.#states[index]
      const time = window.wall ? wall : now
      const remaining = Math.max(limit - window.used(state, time), 0)
      return { limit, per, window: kind, remaining, resetIn: window.returnsAt(state, time) - time }
    })
  }

  /** Whether time has to be looked at on the wall clock, too. */
  get readsWall(): boolean {
    return this.#wallClock !== undefined
  }

  /** Puts other rules over the same states. @param windows made of the present ones by `withLimit`. */
  change(windows: readonly Window[]): void {
    this.#windows = [...windows]
  }

  /** Whether it could be forgotten: all that it knows is as if it had never been. */
  get blank(): boolean {
    const now = this.now()
    if (this.#running > 0 || now < this.#pausedUntil) return false
    const wall = this.wallNow()
    return this.#windows.every(
      (window, index) => window.forgottenAt(this.#states[index]) <= (window.wall ? wall : now),
    )
  }

  #rebase(now: number, wall: boolean): void {
    this.#epoch++
    this.#windows.forEach((window, index) => {
      const state = this.#states[index]
      // What is known of times not far ahead is waited for: that is no longer than the limit may last anyway.
      if (window.wall === wall && window.forgottenAt(state) > now + 2 * window.per) window.rebase(state, now)
    })
  }
}

/** The wall clock that belongs to a clock: a virtual clock is its own. */
export function wallOf(clock: Clock): () => number {
  return clock === systemClock ? Date.now : () => clock.now()
}
