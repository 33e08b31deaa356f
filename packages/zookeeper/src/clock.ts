import { existsSync } from 'node:fs'
import { uptime } from 'node:os'
import { hrtime } from 'node:process'

/** A timer that can be cancelled. */
export interface Timer {
  /** Cancels the timer. Has no effect if it was cancelled or has run. */
  cancel(): void
}

/** The clocks of a system, in milliseconds, each from its own starting point. */
export interface TimeSources {
  /** Stops while the machine sleeps. */
  readonly monotonic: () => number
  /** Includes sleep, and can be set. */
  readonly wall: () => number
  /** Includes sleep, and can't be set. Its steps are coarse, and reading it is slow. */
  readonly uptime: () => number
}

/**
 * Maximum drift of the wall clock against the monotonic one, in milliseconds. After a greater one, the wall clock was
 * set, or the machine has slept.
 */
const APART = 10
/** Resolution of the uptime, in milliseconds. */
const UPTIME_STEP = 10
/** The runtime's timers do not include sleep, so the clock is read again after this time, in milliseconds. */
const MAX_DELAY = 1000

/**
 * Returns a monotonic clock that includes sleep, because servers do not wait for a client that sleeps. It can miss a
 * sleep shorter than two steps of the uptime, and count up to two steps too many of a longer one.
 */
export function countingSleep({ monotonic, wall, uptime }: TimeSources): () => number {
  const uptimeAhead = (): number => {
    for (;;) {
      const before = monotonic()
      const ahead = uptime() - before
      // Otherwise the thread paused in between.
      if (monotonic() - before <= UPTIME_STEP) return ahead
    }
  }
  const atFirst = uptimeAhead()
  let wallAhead = wall() - monotonic()
  let slept = 0
  return () => {
    const time = monotonic()
    const ahead = wall() - time
    if (Math.abs(ahead - wallAhead) > APART) {
      wallAhead = ahead
      const more = uptimeAhead() - atFirst
      if (more > slept + 2 * UPTIME_STEP) slept = more + UPTIME_STEP
    }
    return time + slept
  }
}

function monotonic(): number {
  const [seconds, nanoseconds] = hrtime()
  return seconds * 1e3 + nanoseconds * 1e-6
}

/** On other systems the monotonic clock includes sleep, or there is no precise uptime. */
const isSleepCounted =
  process.platform === 'linux' &&
  !('bun' in process.versions || 'deno' in process.versions) &&
  existsSync('/proc/uptime')

/** The time in milliseconds, with fractions, on a clock that never goes back. */
export const now: () => number = isSleepCounted
  ? countingSleep({ monotonic, wall: () => Date.now(), uptime: () => uptime() * 1e3 })
  : monotonic

/**
 * Runs `task` once, not before `delay` milliseconds have passed.
 * @param keepAlive whether the process stays alive for it: true if a caller waits for it
 */
export function after(delay: number, task: () => void, keepAlive: boolean): Timer {
  const due = now() + delay
  let handle: NodeJS.Timeout
  const set = (left: number): void => {
    handle = setTimeout(look, Math.min(Math.max(left, 0), MAX_DELAY))
    if (!keepAlive) handle.unref()
  }
  // The runtime's timers may run up to a millisecond early.
  const look = (): void => {
    const left = due - now()
    if (left > 0) set(left)
    else task()
  }
  set(delay)
  return { cancel: () => clearTimeout(handle) }
}
