import type { Clock } from '../clock.js'
import { milliseconds, type Duration } from '../duration.js'
import { InvalidArgumentError, shown } from '../errors.js'
import { checkOptions, checkSignal } from '../options.js'
import { DAY, EqualPeriods, ZoneDays } from './rules/calendar-periods.js'
import { CalendarWindow } from './rules/calendar-window.js'
import { SlidingWindow } from './rules/sliding-window.js'
import { SmoothWindow } from './rules/smooth-window.js'
import type { Rules } from './counter.js'
import type { Window } from './rules/window.js'

/** A number of permits in a length of time. */
export interface LimitOptions {
  /** How many permits: a whole number, 1 to a milliard. */
  limit: number
  /** In which time: 1 ms to 366 days. */
  per: Duration
  /**
   * What the limit holds for. `'sliding'`, the default: any interval of this length. `'calendar'`: each period of the
   * wall clock. `'smooth'`: any interval, and permits come evenly spaced.
   */
  window?: 'sliding' | 'calendar' | 'smooth' | undefined
  /** Whose days are meant, such as `'Europe/Berlin'`; for a calendar of `'1d'`. Default: UTC. */
  timeZone?: string | undefined
}

/** What a limiter may have beside its limits. */
interface CommonOptions {
  /** By how much the time from the grant of a permit to the arrival of its call can vary; default 0. */
  jitter?: Duration | undefined
  /** How many permits may be in use together, until they are released; default: any number. */
  concurrency?: number | undefined
  /** How many callers may wait; default: any number. Further ones get a BusyError. */
  queue?: number | undefined
  /** The clock to go by; default: the system's. A VirtualClock lets a test decide the time. */
  clock?: Clock | undefined
}

/** One limit, or several that hold together: never given in both ways. */
export type Limits =
  | (LimitOptions & { limits?: never })
  | ({ limits: readonly LimitOptions[] } & { [name in keyof LimitOptions]?: never })

/** One limit, or several that hold together. */
export type LimiterOptions = CommonOptions & Limits

/** How a permit is waited for. */
export interface AcquireOptions {
  /** How long to wait; default: as long as it takes. With 0 the caller does not wait. */
  wait?: Duration | undefined
  /** Ends the wait. It has no effect on a permit that was given. */
  signal?: AbortSignal | undefined
  /** A whole number: a waiter with a greater one comes first; default 0. */
  priority?: number | undefined
}

/** The options of a wait, checked. */
export interface Terms {
  readonly wait: number
  readonly signal: AbortSignal | undefined
  readonly priority: number
}

const MOST_PERMITS = 1e9
export const PER_BOUNDS = { least: 1, most: 366 * DAY }
export const JITTER_BOUNDS = { least: 0, most: DAY }
const WAIT_BOUNDS = { least: 0, most: Infinity }
const MOST_PRIORITY = 1e6

const LIMIT_NAMES = ['limit', 'per', 'window', 'timeZone']
const COMMON_NAMES = ['jitter', 'concurrency', 'queue', 'clock']
const ACQUIRE_NAMES = ['wait', 'signal', 'priority']
const WINDOWS = ['sliding', 'calendar', 'smooth']

const NO_TERMS: Terms = { wait: Infinity, signal: undefined, priority: 0 }

/** @throws InvalidArgumentError that names the option, what it got and what it takes. */
export function rulesOf(options: LimiterOptions): Rules {
  checkNames(options, COMMON_NAMES)
  const { jitter, concurrency, queue } = options
  const guard = jitter === undefined ? 0 : milliseconds('jitter', jitter, JITTER_BOUNDS)
  return {
    windows: 'limits' in options ? windowsOf(options.limits, guard) : [windowOf(options, guard)],
    concurrency: concurrency === undefined ? Infinity : whole('concurrency', concurrency, 1, MOST_PERMITS),
    queue: queue === undefined ? Infinity : whole('queue', queue, 0, MOST_PERMITS),
  }
}

/**
 * @param names of the options that a limiter may have beside its limits. @throws InvalidArgumentError for any other
 * option.
 */
export function checkNames(options: unknown, names: readonly string[]): asserts options is object {
  const several = typeof options === 'object' && options !== null && 'limits' in options
  checkOptions(options, [...(several ? ['limits'] : LIMIT_NAMES), ...names])
}

function windowsOf(limits: readonly LimitOptions[], jitter: number): readonly Window[] {
  if (!Array.isArray(limits)) {
    throw new InvalidArgumentError(`limits takes an array of limits, not ${shown(limits)}`)
  }
  if (limits.length === 0) throw new InvalidArgumentError('limits takes at least one limit, not none')
  return limits.map((limit: LimitOptions) => {
    checkOptions(limit, LIMIT_NAMES)
    return windowOf(limit, jitter)
  })
}

function windowOf({ limit, per, window = 'sliding', timeZone }: LimitOptions, jitter: number): Window {
  const checked = checkLimit(limit)
  const length = milliseconds('per', per, PER_BOUNDS)
  if (timeZone !== undefined && (window !== 'calendar' || length !== DAY)) {
    throw new InvalidArgumentError(`timeZone is for window 'calendar' and per '1d'`)
  }
  switch (window) {
    case 'sliding':
      return new SlidingWindow(checked, length, jitter)
    case 'smooth':
      return new SmoothWindow(checked, length, jitter)
    case 'calendar': {
      if (!Number.isInteger(length)) {
        throw new InvalidArgumentError(
          `per takes whole milliseconds for window 'calendar', not ${shown(per)}`,
        )
      }
      if (jitter >= length) {
        throw new InvalidArgumentError(`jitter takes less than per for window 'calendar', not ${jitter} ms`)
      }
      const periods = timeZone === undefined ? new EqualPeriods(length) : new ZoneDays(timeZone)
      return new CalendarWindow(checked, length, jitter, periods)
    }
    default:
      throw new InvalidArgumentError(
        `window takes ${WINDOWS.map(name => `'${name}'`).join(', ')}, not ${shown(window)}`,
      )
  }
}

/** @throws InvalidArgumentError unless it is a number of permits that a limit can have. */
export function checkLimit(limit: unknown): number {
  return whole('limit', limit, 1, MOST_PERMITS)
}

/**
 * Which of several limits is meant.
 * @param per its length; undefined where there is one limit.
 * @throws InvalidArgumentError that tells which limits there are, unless exactly one is meant.
 */
export function indexOfLimit(
  limits: readonly { readonly limit: number; readonly per: number }[],
  per: Duration | undefined,
): number {
  const length = per === undefined ? undefined : milliseconds('per', per, PER_BOUNDS)
  const meant = limits.flatMap((limit, index) =>
    length === undefined || limit.per === length ? [index] : [],
  )
  if (meant.length === 1) return meant[0]!
  const there = limits.map(limit => `${limit.limit} in ${limit.per} ms`).join(', ')
  throw new InvalidArgumentError(`per takes which of these limits is meant: ${there}; not ${shown(per)}`)
}

/** @throws InvalidArgumentError that names the option, what it got and what it takes. */
export function termsOf(options: AcquireOptions | undefined): Terms {
  if (options === undefined) return NO_TERMS
  checkOptions(options, ACQUIRE_NAMES)
  const { wait, signal, priority } = options
  checkSignal(signal)
  return {
    wait: wait === undefined ? Infinity : milliseconds('wait', wait, WAIT_BOUNDS),
    signal,
    priority: priority === undefined ? 0 : whole('priority', priority, -MOST_PRIORITY, MOST_PRIORITY),
  }
}

/** @throws InvalidArgumentError unless the value is a whole number within the bounds, both included. */
export function whole(option: string, value: unknown, least: number, most: number): number {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) {
    return value as number
  }
  throw new InvalidArgumentError(
    `${option} takes a whole number from ${least} to ${most}, not ${shown(value)}`,
  )
}
