import { DAY, EqualPeriods, ZoneDays } from './calendar-periods.js'
import { CalendarWindow } from './calendar-window.js'
import { SlidingWindow, type Grains } from './sliding-window.js'
import { SmoothWindow } from './smooth-window.js'
import type { Window } from './window.js'

/** A limit as plain data. */
export type Limit = Pick<WindowDefinition, 'kind' | 'limit' | 'per' | 'timeZone' | 'unit'>

/** A limit for engines, which keep its state for many processes. */
export interface WindowDefinition {
  readonly kind: Window['kind']
  readonly limit: number
  /** Milliseconds. */
  readonly per: number
  /** Minimum time for which a reserved permit can be used, in milliseconds: the expiry time of `docs/limits.md`. */
  readonly hold: number
  /** By how much the window is longer, for jitter and the hold, in milliseconds. */
  readonly guard: number
  /** The time zone of a calendar of days; empty for periods of equal length. */
  readonly timeZone: string
  /** What it counts; left out for calls. */
  readonly unit?: string | undefined
}

/**
 * Limits the state of a limit in an engine to a few kilobytes. Permits that share an entry return with the last of
 * them, which keeps the bound and costs at most a 256th of the rate.
 */
export const COARSE_GRAINS: Grains = { maxExact: 256, parts: 256, inOrder: false }

/** Maximum number of cached rules. A process seldom uses more than a few. */
const MAX_CACHED = 256
const cached = new Map<string, Rule>()

/** A definition, and its window. */
interface Rule {
  readonly definition: WindowDefinition
  readonly window: Window
}

/** Encodes a definition as text, which is equal for equal definitions only. */
export function idOf({ kind, limit, per, hold, guard, timeZone, unit }: WindowDefinition): string {
  const others = unit === undefined ? [] : [unit]
  return JSON.stringify([kind, limit, per, hold, guard, timeZone, ...others])
}

/** Returns the rule of a definition. @param id created by `idOf`. */
export function ruleOf(id: string): Rule {
  const known = cached.get(id)
  if (known) return known
  if (cached.size >= MAX_CACHED) cached.clear()
  const [kind, limit, per, hold, guard, timeZone, unit] = JSON.parse(id) as [
    Window['kind'],
    number,
    number,
    number,
    number,
    string,
    string?,
  ]
  const definition = { kind, limit, per, hold, guard, timeZone, unit }
  const rule = { definition, window: windowOf(definition, guard, COARSE_GRAINS) }
  cached.set(id, rule)
  return rule
}

/**
 * Creates the window of a limit. @param guard by how much it is longer, in milliseconds. @param grains its resolution.
 */
export function windowOf(
  { kind, limit, per, timeZone }: Omit<Limit, 'unit'>,
  guard: number,
  grains?: Grains,
): Window {
  switch (kind) {
    case 'sliding':
      return new SlidingWindow(limit, per, guard, grains)
    case 'smooth':
      return new SmoothWindow(limit, per, guard, grains)
    case 'calendar':
      return new CalendarWindow(limit, per, guard, periodsOf(timeZone, per))
  }
}

/** Whether grants that keep the first limit always keep the other, too. */
export function implies(one: WindowDefinition, other: WindowDefinition): boolean {
  if (one.unit !== other.unit || one.limit > other.limit || one.per + one.guard < other.per + other.guard)
    return false
  if (other.kind === 'sliding') return one.kind !== 'calendar'
  return one.kind === other.kind && (one.kind === 'smooth' || sharesPeriods(one, other))
}

/** Whether two calendars have the same periods. */
export function sharesPeriods(one: WindowDefinition, other: WindowDefinition): boolean {
  return one.per === other.per && one.timeZone === other.timeZone
}

/** The periods of a calendar. */
export function periodsOf(timeZone: string, per: number): EqualPeriods | ZoneDays {
  return timeZone === '' || per !== DAY ? new EqualPeriods(per) : new ZoneDays(timeZone)
}

/** The minimum time between a permit and the one that comes after a number of others, in milliseconds. */
export function leastDelay(windows: readonly WindowDefinition[], others: number): number {
  const delays = windows.map(({ kind, limit, per, guard }) => {
    const full = Math.floor(others / limit)
    // The first of them may come anywhere in its period.
    return kind === 'calendar' ? Math.max(full - 1, 0) * per : full * (per + guard)
  })
  return Math.max(...delays)
}
