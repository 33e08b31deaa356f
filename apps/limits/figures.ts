import type { Call } from './call.js'
import { SECOND, type Setting } from './setting.js'

/** Figures of one strategy. */
export interface Figures {
  readonly name: string
  /** Calls that arrived within the run. */
  readonly calls: number
  /** Maximum number of calls that the limit allows in that time. */
  readonly ideal: number
  /** Maximum number of calls that the strategy let through within any second. */
  readonly worstGranted: number
  /**
   * Maximum number of calls that arrived within any second. Exceeds `worstGranted` only if calls took different times
   * to arrive.
   */
  readonly worstWindow: number
  /** Maximum number of calls that arrived within a second of the wall clock. */
  readonly worstCalendarSecond: number
  /** Number of seconds in which less than nine tenths of the limit arrived although callers were waiting. */
  readonly idleSeconds: number
  /** Whether callers got their permits in the order in which they asked. */
  readonly orderKept: boolean
  /**
   * Time by which its windows were longer than a second, in milliseconds; undefined if the strategy has no such guard.
   */
  readonly guard: number | undefined
}

/** A run as the service saw it. */
export interface Run {
  readonly calls: readonly Call[]
  /** Start of the run, on the clock of the calls. */
  readonly startedAt: number
  /** Milliseconds since 1970 minus the clock of the calls. */
  readonly wallOffset: number
  /** Assumed variation of the time from a permit to the arrival of its call, in milliseconds. */
  readonly guard: number | undefined
}

/** A second with less than this part of the limit counts as idle. */
const BUSY = 0.9
/** Requests, or permits, within this time of each other count as simultaneous, in milliseconds. */
const SAME_TIME = 50

/** Calculates the figures of a run. */
export function figures(name: string, { limit, seconds }: Setting, run: Run): Figures {
  const { startedAt } = run
  const within = run.calls.filter(({ arrived }) => arrived < startedAt + seconds * SECOND)
  const arrivals = within.map(({ arrived }) => arrived).sort((a, b) => a - b)
  return {
    name,
    calls: arrivals.length,
    ideal: limit * seconds,
    worstGranted: worstWindow(within.map(({ sent }) => sent).sort((a, b) => a - b)),
    worstWindow: worstWindow(arrivals),
    worstCalendarSecond: Math.max(0, ...counts(arrivals, -run.wallOffset).values()),
    idleSeconds: idleSeconds(arrivals, limit, seconds, startedAt),
    orderKept: orderKept(within),
    guard: run.guard,
  }
}

/** Returns the difference between the longest and the shortest time from a permit to its arrival, in milliseconds. */
export function spread({ calls }: Run): number {
  const ways = calls.map(({ arrived, sent }) => arrived - sent)
  return Math.max(...ways) - Math.min(...ways)
}

/**
 * Returns by how much the shortest period in which one call more than the limit arrived is shorter than a second, in
 * milliseconds.
 */
export function shortfall({ calls }: Run, limit: number): number {
  const arrivals = calls.map(({ arrived }) => arrived).sort((a, b) => a - b)
  return SECOND - Math.min(...arrivals.slice(limit).map((arrival, index) => arrival - arrivals[index]!))
}

/** Returns the maximum number of arrivals within any second, without its end. @param arrivals in order. */
export function worstWindow(arrivals: readonly number[]): number {
  let worst = 0
  let first = 0
  for (const [index, arrival] of arrivals.entries()) {
    while (arrival - arrivals[first]! >= SECOND) first++
    worst = Math.max(worst, index - first + 1)
  }
  return worst
}

/** Counts the arrivals in each second that has any. Seconds are numbered from `origin`. */
function counts(arrivals: readonly number[], origin: number): Map<number, number> {
  const bySecond = new Map<number, number>()
  for (const arrival of arrivals) {
    const second = Math.floor((arrival - origin) / SECOND)
    bySecond.set(second, (bySecond.get(second) ?? 0) + 1)
  }
  return bySecond
}

function idleSeconds(arrivals: readonly number[], limit: number, seconds: number, startedAt: number): number {
  const bySecond = counts(arrivals, startedAt)
  let idle = 0
  for (let second = 0; second < seconds; second++) {
    if ((bySecond.get(second) ?? 0) < limit * BUSY) idle++
  }
  return idle
}

/** Whether callers got their permits in the order in which they asked, as far as the times can be distinguished. */
export function orderKept(calls: readonly Call[]): boolean {
  const bySending = [...calls].sort((a, b) => a.sent - b.sent)
  let latest = -Infinity
  let before = 0
  for (const { asked, sent } of bySending) {
    // The latest request among those that were clearly granted earlier.
    for (; bySending[before]!.sent < sent - SAME_TIME; before++) {
      latest = Math.max(latest, bySending[before]!.asked)
    }
    if (latest > asked + SAME_TIME) return false
  }
  return true
}
