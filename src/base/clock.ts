import { existsSync } from 'node:fs'
import { uptime } from 'node:os'
import { InvalidArgumentError, shown } from './errors.js'
import { foreignClock } from './foreign-clock.js'
import { runtimeTimers } from './runtime-timers.js'

/** A timer that can be cancelled. */
export interface Timer {
  /** Cancels the timer. A second call, or one after the timer has run, does nothing. */
  cancel(): void
}

/**
 * A clock with timers, which tests can replace. Times are in milliseconds, with fractions, and never decrease.
 */
export interface Clock {
  /** Returns the current time. */
  now(): number
  /**
   * Runs `task` once, after at least `delay` milliseconds.
   * @param keepAlive whether the timer keeps the process alive: true if a caller waits for its effect.
   * @param isUpkeep whether the task is periodic upkeep that sets the timer again, so fake timers must not wait for it.
   */
  after(delay: number, task: () => void, keepAlive: boolean, isUpkeep?: boolean): Timer
  /** Returns the wall-clock time, in milliseconds since 1970. Without this method, `now` returns that. */
  wall?(): number
}

/** The clocks that reveal a sleep of the machine: times in milliseconds, each with an origin of its own. */
export interface TimeSources {
  /** Stands still while the machine sleeps. */
  monotonic(): number
  /** Counts sleep, and can be set. */
  wall(): number
  /** Counts sleep and can't be set, but is late by up to a step. */
  uptime(): number
}

/** Resolution of the uptime, in milliseconds. */
const UPTIME_STEP = 10
/**
 * Maximum movement of the wall clock against the monotonic one, in milliseconds. After a greater one, the wall clock
 * was set, or the machine has slept.
 */
const MAX_DRIFT = 10
/** A machine needs longer than this to fall asleep and wake up, while no process runs, in milliseconds. */
const CHECK_INTERVAL = 1

/**
 * Measures the time for which the machine has slept. The wall clock shows whether a sleep is possible. Only then the
 * uptime is read, which takes a hundred times as long.
 */
export class SleepCounter {
  /** Milliseconds; up to two steps of the uptime too long. A sleep that is shorter than two steps may be missed. */
  slept = 0
  /** Time of the monotonic clock from which `check` must be called before `slept` is used. */
  checkAt: number
  readonly #sources: TimeSources
  /** Lower and upper bound of the uptime minus the monotonic time, at creation. */
  readonly #atFirst: readonly [min: number, max: number]
  /** The wall clock minus the monotonic time, at the last check. */
  #wallAhead: number

  constructor(sources: TimeSources) {
    this.#sources = sources
    this.#atFirst = this.#uptimeAhead()
    this.checkAt = sources.monotonic()
    this.#wallAhead = sources.wall() - this.checkAt
  }

  /** @param now the monotonic time. */
  check(now: number): void {
    this.checkAt = now + CHECK_INTERVAL
    const wallAhead = this.#sources.wall() - now
    if (Math.abs(wallAhead - this.#wallAhead) <= MAX_DRIFT) return
    this.#wallAhead = wallAhead
    const [min, max] = this.#uptimeAhead()
    // Only a certain sleep counts; otherwise a wall clock that is set would shorten grants. Its longest possible
    // duration counts, so that deadlines are early rather than late.
    if (min - this.#atFirst[1] > this.slept) this.slept = max - this.#atFirst[0]
  }

  #uptimeAhead(): readonly [min: number, max: number] {
    for (;;) {
      const before = this.#sources.monotonic()
      const uptime = this.#sources.uptime()
      const after = this.#sources.monotonic()
      // Otherwise the thread was suspended between the readings, so the bounds would be too wide.
      if (after - before <= UPTIME_STEP) return [uptime - after, uptime + UPTIME_STEP - before]
    }
  }
}

/** Bun and Deno have entries here, next to that of the Node version that they emulate. */
const { bun, deno } = process.versions

/** The runtime if it is not Node. Its `process.hrtime` begins at 0 in each process and thread. */
const foreignRuntime = bun !== undefined ? 'Bun' : deno !== undefined ? 'Deno' : undefined

function monotonic(): number {
  // Faster than performance.now(), which has another origin in each thread.
  const time = runtimeTimers.hrtime()
  return time[0] * 1e3 + time[1] * 1e-6
}

/** For Linux, whose monotonic clock stands still during sleep. Without that file the uptime is in whole seconds. */
const sleep =
  process.platform === 'linux' && foreignRuntime === undefined && existsSync('/proc/uptime')
    ? new SleepCounter({ monotonic, wall: () => Date.now(), uptime: () => uptime() * 1e3 })
    : undefined

/**
 * The system's monotonic clock, which changes of the wall clock do not affect. Deadlines use it, because it includes
 * the time for which the machine sleeps, as far as P3 in `docs/guarantees.md` says. After a sleep, it differs between
 * processes and threads.
 */
export const systemClock: Clock = clockOf(() => {
  const now = monotonic()
  if (sleep === undefined) return now
  if (now >= sleep.checkAt) sleep.check(now)
  return now + sleep.slept
})

/** Loaded when it is first used, because Deno may have to ask for a permission. */
let readForeign: (() => number) | undefined

/**
 * The system's monotonic clock, for times that processes or threads share: it is the same in all of them. On Linux it
 * stands still while the machine sleeps, as the processes do. The uptime, which includes sleep, has a resolution of
 * only 10 ms there. On Bun and Deno, `now` throws an UnavailableError if they can't call the C library.
 */
export const sharedClock: Clock = clockOf(
  foreignRuntime === undefined ? monotonic : () => (readForeign ??= foreignClock(foreignRuntime))(),
)

/**
 * Maximum delay of a timer of the runtime, in milliseconds. These do not count sleep, so a timer that falls due during
 * a sleep runs this long after it at the latest.
 */
const MAX_DELAY = 1000

function clockOf(now: () => number): Clock {
  const clock: Clock = {
    now,
    after(delay, task, keepAlive) {
      const due = clock.now() + delay
      let handle: NodeJS.Timeout
      const set = (left: number): void => {
        handle = runtimeTimers.setTimeout(check, Math.min(Math.max(left, 0), MAX_DELAY))
        if (!keepAlive) handle.unref()
      }
      // The runtime rounds to whole milliseconds, so more than half of its timers are early.
      const check = (): void => {
        const left = due - clock.now()
        if (left > 0) set(left)
        else task()
      }
      set(delay)
      return { cancel: () => runtimeTimers.clearTimeout(handle) }
    },
  }
  return clock
}

interface VirtualTimer {
  at: number
  order: number
  task: () => void
}

/** A clock that stands still until it is advanced, for simulations and tests. */
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

  /** Returns the time at which the next timer is due; undefined if none is set. */
  nextAt(): number | undefined {
    return this.#next()?.at
  }

  /**
   * Advances by `duration` milliseconds, and runs the timers that are due, by time, then by the order of setting.
   * @throws InvalidArgumentError unless `duration` is a finite number, 0 or more.
   */
  advance(duration: number): void {
    if (!Number.isFinite(duration) || duration < 0) {
      throw new InvalidArgumentError(`duration must be milliseconds, 0 or more, not ${shown(duration)}`)
    }
    this.advanceTo(this.#now + duration)
  }

  /** Advances to a time, unless it has passed, and runs the timers that are due, as {@link advance} does. */
  advanceTo(until: number): void {
    for (let timer = this.#next(); timer && timer.at <= until; timer = this.#next()) {
      this.#timers.delete(timer)
      this.#now = Math.max(this.#now, timer.at)
      timer.task()
    }
    this.#now = Math.max(this.#now, until)
  }

  /** Advances without running timers, like the clock of a paused process: they run late. */
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

/** The wall clock for a clock; a virtual clock is its own wall clock. */
export function wallOf(clock: Clock): () => number {
  if (clock === systemClock) return Date.now
  return () => clock.wall?.() ?? clock.now()
}
