import { hrtime } from 'node:process'
import { InvalidArgumentError, shown } from './errors.js'

/** A timer that has been set and can be taken back. */
export interface Timer {
  /** Takes the timer back. Doing so twice, or after it ran, is harmless. */
  cancel(): void
}

/**
 * The one source of time below the public face, so that a test can replace it.
 * Times are milliseconds, fractions included, on a clock that never goes back.
 */
export interface Clock {
  /** The time now. */
  now(): number
  /**
   * Runs `task` once, not before `delay` milliseconds have passed.
   * @param keepAlive whether the process stays alive for it: true where somebody awaits the outcome.
   */
  after(delay: number, task: () => void, keepAlive: boolean): Timer
}

/** The longest delay that the runtime's timers take; a longer one would fire at once. */
const LONGEST_DELAY = 2 ** 31 - 1

/** The system's monotonic clock: the same in every process and thread of a machine, untouched by changes of the wall clock. */
export const systemClock: Clock = {
  now() {
    // Cheaper than performance.now(), which counts from another moment in every thread.
    const time = hrtime()
    return time[0] * 1e3 + time[1] * 1e-6
  },
  after(delay, task, keepAlive) {
    const due = systemClock.now() + delay
    let handle: NodeJS.Timeout
    const set = (left: number): void => {
      handle = setTimeout(look, Math.min(Math.max(left, 0), LONGEST_DELAY))
      if (!keepAlive) handle.unref()
    }
    // The runtime counts timers in whole milliseconds from a whole millisecond on, so more than half of them come early.
    const look = (): void => {
      const left = due - systemClock.now()
      if (left > 0) set(left)
      else task()
    }
    set(delay)
    return { cancel: () => clearTimeout(handle) }
  },
}

interface VirtualTimer {
  at: number
  order: number
  task: () => void
}

/** A clock that stands still until it is told to go on: for simulations and for tests of timing. */
export class VirtualClock implements Clock {
  #now: number
  #order = 0
  readonly #timers = new Set<VirtualTimer>()

  constructor(start = 0) {
    this.#now = start
  }

  now(): number {
    return this.#now
  }

  after(delay: number, task: () => void): Timer {
    const timer = { at: this.#now + Math.max(delay, 0), order: this.#order++, task }
    this.#timers.add(timer)
    return { cancel: () => void this.#timers.delete(timer) }
  }

  /** When the next timer is due; undefined when none is set. */
  nextAt(): number | undefined {
    return this.#next()?.at
  }

  /**
   * Goes on by `duration` milliseconds and runs what falls due meanwhile, in order of time, then of setting.
   * @throws InvalidArgumentError when that is no number of milliseconds, 0 or more.
   */
  advance(duration: number): void {
    if (!Number.isFinite(duration) || duration < 0) {
      throw new InvalidArgumentError(`duration takes milliseconds from 0 on, not ${shown(duration)}`)
    }
    const until = this.#now + duration
    for (let timer = this.#next(); timer && timer.at <= until; timer = this.#next()) {
      this.#timers.delete(timer)
      this.#now = Math.max(this.#now, timer.at)
      timer.task()
    }
    this.#now = until
  }

  /** Jumps ahead without running anything, as the clock of a stopped process does: its timers then run late. */
  freeze(duration: number): void {
    this.#now += duration
  }

  #next(): VirtualTimer | undefined {
    let first: VirtualTimer | undefined
    for (const timer of this.#timers) {
      if (!first || timer.at < first.at || (timer.at === first.at && timer.order < first.order)) first = timer
    }
    return first
  }
}
