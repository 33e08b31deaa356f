import { existsSync } from 'node:fs'
import { uptime } from 'node:os'
import { hrtime } from 'node:process'

/** A timer that was set and can be cancelled. */
export interface Timer {
  /** Cancels the timer. Doing so twice, or after it ran, is harmless. */
  cancel(): void
}

/** The clocks of a system: milliseconds, each counted from a moment of its own. */
export interface TimeSources {
  /** Stands still while the machine sleeps. */
  readonly monotonic: () => number
  /** Counts sleep, and can be set. */
  readonly wall: () => number
  /** Counts sleep and can't be set. Its steps are coarse and reading it is slow. */
  readonly uptime: () => number
}

/** If the wall clock has moved by more than this against the monotonic one, it was set or the machine has slept. */
const APART = 10
/** The uptime advances in steps of this: milliseconds. */
const UPTIME_STEP = 10
/** The runtime's timers do not count sleep, so the clock is read again after this time: milliseconds. */
const MAX_DELAY = 1000

/**
 * A monotonic clock that also counts sleep, because servers do not wait for a client that sleeps. A sleep that is shorter
 * than two steps of the uptime may be missed; of a longer one, up to two steps too much are counted.
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

/** Elsewhere the monotonic clock counts sleep, or there is no precise uptime. */
const isSleepCounted =
  process.platform === 'linux' &&
  !('bun' in process.versions || 'deno' in process.versions) &&
  existsSync('/proc/uptime')

/** The time: milliseconds, fractions included, on a clock that never goes back. */
export const now: () => number = isSleepCounted
  ? countingSleep({ monotonic, wall: () => Date.now(), uptime: () => uptime() * 1e3 })
  : monotonic

/**
 * Runs `task` once, not before `delay` milliseconds have passed.
 * @param keepAlive whether the process stays alive for it: true where a caller waits for it
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
