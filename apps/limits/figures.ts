import type { Call } from './call.js'
import { SECOND, type Setting } from './setting.js'

/** What one strategy did. */
export interface Figures {
  readonly name: string
  /** Calls that arrived within the run. */
  readonly calls: number
  /** How many the limit allows in that time. */
  readonly ideal: number
  /** The most calls that the strategy let through within any second. */
  readonly worstGranted: number
  /** The most calls that arrived within any second. More than were let through: their ways differed. */
  readonly worstWindow: number
  /** The most calls that arrived within a second of the clock. */
  readonly worstCalendarSecond: number
  /** Seconds of the run in which less than nine tenths of the limit arrived although callers were waiting. */
  readonly idleSeconds: number
  /** Whether no caller went before one that had asked earlier. */
  readonly orderKept: boolean
  /** By how much its windows were longer than a second; undefined where a strategy has no such guard. */
  readonly guard: number | undefined
}

/** A run as the service saw it. */
export interface Run {
  readonly calls: readonly Call[]
  /** When it began: on the clock of the calls. */
  readonly startedAt: number
  /** Milliseconds since 1970 less the clock of the calls. */
  readonly wallOffset: number
  /** By how much the way from a permit to the service was taken to vary, in milliseconds. */
  readonly guard: number | undefined
}

/** Below this part of the limit a second counts as idle. */
const BUSY = 0.9
/** Callers that ask or go within this time of each other count as simultaneous, in milliseconds. */
const SAME_TIME = 50

/** Sums up a run. */
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

/** By how much the ways of calls to the service differed, in milliseconds. */
export function spread({ calls }: Run): number {
  const ways = calls.map(({ arrived, sent }) => arrived - sent)
  return Math.max(...ways) - Math.min(...ways)
}

/**
 * By how much the shortest time in which one call more than the limit arrived was less than a second, in milliseconds.
 */
export function shortfall({ calls }: Run, limit: number): number {
  const arrivals = calls.map(({ arrived }) => arrived).sort((a, b) => a - b)
  return SECOND - Math.min(...arrivals.slice(limit).map((arrival, index) => arrival - arrivals[index]!))
}

/** The most arrivals within any second, its end not included. @param arrivals in order. */
export function worstWindow(arrivals: readonly number[]): number {
  let worst = 0
  let first = 0
  for (const [index, arrival] of arrivals.entries()) {
    while (arrival - arrivals[first]! >= SECOND) first++
    worst = Math.max(worst, index - first + 1)
  }
  return worst
}

/** Arrivals in each second that has any, counted from `origin`. */
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

/** Whether each went before all who had asked later, where the two can be distinguished. */
export function orderKept(calls: readonly Call[]): boolean {
  const bySending = [...calls].sort((a, b) => a.sent - b.sent)
  let latest = -Infinity
  let before = 0
  for (const { asked, sent } of bySending) {
    // The latest asker of all who went clearly earlier.
    for (; bySending[before]!.sent < sent - SAME_TIME; before++) {
      latest = Math.max(latest, bySending[before]!.asked)
    }
    if (latest > asked + SAME_TIME) return false
  }
  return true
}
