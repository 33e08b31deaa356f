import type { Clock, Timer } from '../base/clock.js'
import { InvalidArgumentError, shown } from '../base/errors.js'
import { LEAP_YEAR } from './limit-options.js'
import type { Window } from '../engine/limits/window.js'

/** The clocks that a limiter and all its keys use. */
export class Times implements Clock {
  /** Number of times that a clock was set back. */
  epoch = 0
  readonly #clock: Clock
  readonly #readWall: () => number
  readonly #steady: () => number
  readonly #steadyWall: (() => number) | undefined

  /** @param readWall returns milliseconds since 1970. */
  constructor(windows: readonly Window[], clock: Clock, readWall: () => number) {
    this.#clock = clock
    this.#readWall = readWall
    const tolerance = Math.min(...windows.map(({ per }) => per))
    const onSetBack = (): void => {
      this.epoch++
    }
    this.#steady = steady(() => clock.now(), tolerance, onSetBack)
    if (windows.some(({ wall }) => wall)) this.#steadyWall = steady(readWall, tolerance, onSetBack)
  }

  /** Clock time, which goes back only when the clock was set back by more than the shortest window. */
  now(): number {
    return this.#steady()
  }

  after(delay: number, task: () => void, keepAlive: boolean): Timer {
    return this.#clock.after(delay, task, keepAlive)
  }

  /** The time of the wall clock at `now`, if a window needs it; else 0. */
  wallNow(): number {
    return this.#steadyWall ? this.#steadyWall() : 0
  }

  /** Whether a window needs the wall clock. */
  get readsWall(): boolean {
    return this.#steadyWall !== undefined
  }

  /** Converts the argument of `pauseUntil` to clock time. @throws InvalidArgumentError as {@link pauseTime} */
  pauseTime(time: Date | number): number {
    const wall = this.#readWall()
    return pauseTime(time, wall) - wall + this.now()
  }
}

/**
 * Returns a clock that hides small backward steps of another one, and reports larger ones.
 * @param tolerance maximum time by which a reading may be too early, in milliseconds.
 * @param onSetBack called when a reading shows that the clock was set back.
 */
function steady(read: () => number, tolerance: number, onSetBack: () => void): () => number {
  let latest = -Infinity
  return () => {
    const reading = read()
    if (reading < latest) {
      if (latest - reading <= tolerance) return latest
      onSetBack()
    }
    return (latest = reading)
  }
}

/**
 * Converts the argument of `pauseUntil` to milliseconds since 1970.
 * @throws InvalidArgumentError for an invalid time, or one more than 366 days ahead of `wall`.
 */
export function pauseTime(time: Date | number, wall: number): number {
  const milliseconds = time instanceof Date ? time.getTime() : time
  if (typeof milliseconds !== 'number' || !Number.isFinite(milliseconds)) {
    throw new InvalidArgumentError(`pauseUntil must be a Date or milliseconds since 1970, not ${shown(time)}`)
  }
  if (milliseconds > 0 && milliseconds <= LEAP_YEAR && wall - milliseconds > LEAP_YEAR) {
    throw new InvalidArgumentError(
      `pauseUntil must be a Date or milliseconds since 1970, not a duration; write Date.now() + ${milliseconds}`,
    )
  }
  // A later time is probably a mistake, and would pause every process.
  if (milliseconds - wall > LEAP_YEAR) {
    throw new InvalidArgumentError(`pauseUntil must be a time within the next 366 days, not ${shown(time)}`)
  }
  return milliseconds
}
