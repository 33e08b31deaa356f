import { existsSync } from 'node:fs'
import { uptime } from 'node:os'
import { hrtime } from 'node:process'
import { InvalidArgumentError, shown } from './errors.js'

/** A timer that was set and can be cancelled. */
export interface Timer {
  /** Cancels the timer. Doing so twice, or after it ran, is harmless. */
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
   * @param keepAlive whether the process stays alive for it: true where a caller awaits the outcome.
   */
  after(delay: number, task: () => void, keepAlive: boolean): Timer
}

/**
 * The clocks by which a sleep of the machine is found: times in milliseconds, each counted from a moment of its own.
 */
export interface TimeSources {
  /** Stands still while the machine sleeps. */
  monotonic(): number
  /** Counts sleep, and can be set. */
  wall(): number
  /** Counts sleep and can't be set, but is up to a step behind. */
  uptime(): number
}

/** Resolution of the uptime, in milliseconds. */
const UPTIME_STEP = 10
/** A wall clock that has moved by more than this against the monotonic one was set, or the machine has slept. */
const APART = 10
/** A machine takes longer than this to fall asleep and to wake up, while no process runs, in milliseconds. */
const BETWEEN_LOOKS = 1

/**
 * Counts how long the machine has slept. The wall clock shows whether a sleep is possible. Only then the uptime is
 * read, which takes a hundred times longer.
 */
export class SleepCounter {
  /** Milliseconds, and up to two steps of the uptime more. A sleep that is shorter than two steps may be missed. */
  slept = 0
  /** The time of the monotonic clock from which `look` must be called before `slept` is used. */
  lookAt: number
  readonly #sources: TimeSources
  /** Lower and upper bound of the uptime minus the monotonic time, at creation. */
  readonly #atFirst: readonly [min: number, max: number]
  /** The wall clock less the monotonic time, at the last look. */
  #wallAhead: number

  constructor(sources: TimeSources) {
    this.#sources = sources
    this.#atFirst = this.#uptimeAhead()
    this.lookAt = sources.monotonic()
    this.#wallAhead = sources.wall() - this.lookAt
  }

  /** @param now the monotonic time. */
  look(now: number): void {
    this.lookAt = now + BETWEEN_LOOKS
    const wallAhead = this.#sources.wall() - now
    if (Math.abs(wallAhead - this.#wallAhead) <= APART) return
    this.#wallAhead = wallAhead
    const [min, max] = this.#uptimeAhead()
    // Only a sleep that is certain counts, or a wall clock that is set would shorten grants. Its longest possible
    // duration counts, so that a deadline comes early rather than late.
    if (min - this.#atFirst[1] > this.slept) this.slept = max - this.#atFirst[0]
  }

  #uptimeAhead(): readonly [min: number, max: number] {
    for (;;) {
      const before = this.#sources.monotonic()
      const uptime = this.#sources.uptime()
      const after = this.#sources.monotonic()
      // Otherwise the thread got no time in between, and nothing would be certain.
      if (after - before <= UPTIME_STEP) return [uptime - after, uptime + UPTIME_STEP - before]
    }
  }
}

/** Bun and Deno name themselves here, next to the version of Node that they resemble. */
const { bun, deno } = process.versions

/** The runtime if it is not Node: there `process.hrtime` starts again in every process and thread. */
export const foreignRuntime = bun !== undefined ? 'Bun' : deno !== undefined ? 'Deno' : undefined

function monotonic(): number {
  // Cheaper than performance.now(), which counts from another moment in every thread.
  const time = hrtime()
  return time[0] * 1e3 + time[1] * 1e-6
}

/** For Linux, where the monotonic clock stands still during sleep. Without that file the uptime is in seconds. */
const sleep =
  process.platform === 'linux' && foreignRuntime === undefined && existsSync('/proc/uptime')
    ? new SleepCounter({ monotonic, wall: () => Date.now(), uptime: () => uptime() * 1e3 })
    : undefined

/**
 * The system's monotonic clock, untouched by changes of the wall clock. It counts the time for which the machine
 * sleeps, as far as P3 in `docs/guarantees.md` says, so deadlines use it. Processes and threads that have seen a sleep
 * disagree with each other, and with those that began after it.
 */
export const systemClock: Clock = clockOf(() => {
  const now = monotonic()
  if (sleep === undefined) return now
  if (now >= sleep.lookAt) sleep.look(now)
  return now + sleep.slept
})

/**
 * The system's monotonic clock, for times that processes or threads share: it is exactly the same in all of them. On
 * Linux it stands still while the machine sleeps, as they do. The uptime, which counts sleep there, has a resolution of
 * 10 ms, which is too coarse to be shared.
 */
export const sharedClock: Clock = clockOf(monotonic)

/**
 * The runtime's timers do not count sleep, so the clock is read again after this many milliseconds. A timer that fell
 * due during a sleep runs that soon after it.
 */
const MAX_DELAY = 1000

function clockOf(now: () => number): Clock {
  const clock: Clock = {
    now,
    after(delay, task, keepAlive) {
      const due = clock.now() + delay
      let handle: NodeJS.Timeout
      const set = (left: number): void => {
        handle = setTimeout(look, Math.min(Math.max(left, 0), MAX_DELAY))
        if (!keepAlive) handle.unref()
      }
      // The runtime counts timers in whole milliseconds from a whole millisecond on, so more than half of them come
      // early.
      const look = (): void => {
        const left = due - clock.now()
        if (left > 0) set(left)
        else task()
      }
      set(delay)
      return { cancel: () => clearTimeout(handle) }
    },
  }
  return clock
}

interface VirtualTimer {
  at: number
  order: number
  task: () => void
}

/** A clock that stands still until it is advanced: for simulations and for tests of timing. */
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
   * Continues by `duration` milliseconds and runs what falls due meanwhile, in order of time, then of setting.
   * @throws InvalidArgumentError unless that is a number of milliseconds, 0 or more.
   */
  advance(duration: number): void {
    if (!Number.isFinite(duration) || duration < 0) {
      throw new InvalidArgumentError(`duration must be milliseconds, 0 or more, not ${shown(duration)}`)
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

/** The wall clock that belongs to a clock: a virtual clock is its own. */
export function wallOf(clock: Clock): () => number {
  return clock === systemClock ? Date.now : () => clock.now()
}
