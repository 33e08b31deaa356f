import type { Duration } from '../../duration.js'
import { InvalidArgumentError, shown } from '../../errors.js'
import { idOf, implies, type WindowDefinition } from '../../engine/limits/definition.js'
import {
  checkedOptions,
  rulesOf,
  whole,
  withLimit,
  type CheckedOptions,
  type Limits,
} from '../limit-options.js'
import { FARTHEST } from '../../engine/limits/reserve-permits.js'
import type { Rules } from '../counter.js'

/** One limit, or several that hold together, for all processes that reach the same engine. */
export type BoxLimiterOptions = {
  /** By how much the time from the grant of a permit to the arrival of its call can vary; default 0. */
  jitter?: Duration | undefined
  /**
   * How many permits may be in use together, in all processes, until they are released: 1 to 10,000; default: any
   * number. The permits of a dead process come back with its lease, after at most 30 seconds. While processes use
   * different numbers, each permit takes the part of the whole that its own process's number says.
   */
  concurrency?: number | undefined
  /** How many callers of this process may wait; default: any number. Further ones get a BusyError. */
  queue?: number | undefined
  /**
   * So many permits are fetched together where the engine has them, for callers of this process that come within the
   * hold; default 1. It makes high rates cheap. Unused permits go back. Not for `'smooth'`.
   */
  batch?: number | undefined
  /**
   * What happens while the engine can't be asked. `'error'`, the default, rejects with what went wrong. `'closed'`
   * admits no caller, and waiters keep waiting. `'open'` uses a limiter of this process alone, with the limits as they
   * are. `'share'` uses one with this process's part of each limit.
   */
  onUnavailable?: 'error' | 'open' | 'closed' | 'share' | undefined
  /** Into how many parts `'share'` divides each limit: how many processes there are. */
  shares?: number | undefined
} & Limits

/** The options, each checked as far as the others do not matter. */
interface CheckedBoxOptions extends CheckedOptions {
  readonly batch: number
  readonly onUnavailable: NonNullable<BoxLimiterOptions['onUnavailable']>
  readonly shares: number | undefined
}

/** The options, checked, and what follows from them. */
export interface BoxTerms {
  /** The options that they were made from. */
  readonly options: CheckedBoxOptions
  readonly windows: readonly WindowDefinition[]
  /** The most permits that can be given together. */
  readonly maxPermits: number
  /** How far ahead permits are reserved, in milliseconds. */
  readonly horizon: number
  /** Minimum and maximum time for which a permit can be used, in milliseconds. */
  readonly hold: number
  readonly mostHold: number
  /** How many permits may be in use together. */
  readonly concurrency: number
  readonly queue: number
  readonly batch: number
  readonly onUnavailable: CheckedBoxOptions['onUnavailable']
  /** The rules of this process alone, if it uses them while the engine is unreachable. */
  readonly share: Rules | undefined
  /** The same for equal options only. */
  readonly signature: string
}

/** Minimum part of the shortest window for which a reserved permit can be used. */
const HOLD = 0.02
/** The bounds of that, milliseconds: answers take their time, and no caller needs a longer hold. */
const MIN_HOLD = 5
const MAX_HOLD = 1000
/**
 * Maximum part of a calendar's period for which a permit can be used: none is given in the last part of a
 * period.
 */
const PART_OF_PERIOD = 0.5
/**
 * Permits are reserved this many windows ahead, within these bounds in milliseconds. A process reserves no more than
 * its part of one window, so this is enough for more processes than the limit has permits. Up to then they are served
 * in the order in which they asked.
 */
const AHEAD = 5
const MIN_AHEAD = 500
const MAX_AHEAD = FARTHEST / 2

const BOX_NAMES = ['jitter', 'concurrency', 'queue', 'batch', 'onUnavailable', 'shares']
const POLICIES = ['error', 'open', 'closed', 'share'] as const
const MAX_SHARES = 1e6
/** With a greater number, equal parts of the whole would leave room for one permit more. */
const MAX_CONCURRENCY = 10_000

/** @throws InvalidArgumentError that names the option, what it got and what it takes. */
export function boxTerms(options: BoxLimiterOptions): BoxTerms {
  const checked = checkedOptions(options, BOX_NAMES, MAX_CONCURRENCY)
  const { batch = 1, onUnavailable = 'error', shares } = options
  return termsFrom({ ...checked, batch, onUnavailable, shares })
}

/**
 * The same terms with another limit.
 * @param per which of the limits, where there are several.
 * @throws InvalidArgumentError
 */
export function changedTerms({ options }: BoxTerms, limit: number, per: Duration | undefined): BoxTerms {
  return termsFrom(withLimit(options, limit, per))
}

/** Whether permits that are reserved under some terms keep others, too. */
export function keeps(one: BoxTerms, other: BoxTerms): boolean {
  return other.windows.every(window => one.windows.some(its => implies(its, window)))
}

function termsFrom(options: CheckedBoxOptions): BoxTerms {
  const { limits, jitter, queue, concurrency, onUnavailable, shares } = options
  const shortest = Math.min(...limits.map(({ per }) => per))
  const hold = Math.max(Math.min(shortest * HOLD, MAX_HOLD), MIN_HOLD)
  const all = limits.map(limit => ({ ...limit, hold, guard: jitter + hold }))
  // A limit that is given twice counts once.
  const windows = [...new Map(all.map(window => [idOf(window), window])).values()]
  const calendars = windows.filter(({ kind }) => kind === 'calendar')
  for (const { per, guard } of calendars) {
    if (guard >= per) {
      throw new InvalidArgumentError(
        `per must be more than ${guard} ms for window 'calendar' of a box, the sum of jitter and hold, not ${per} ms`,
      )
    }
  }
  const periods = calendars.map(({ per }) => (per - jitter) * PART_OF_PERIOD)
  const maxPermits = Math.min(...limits.map(({ limit }) => limit))
  const batch = whole('batch', options.batch, 1, maxPermits)
  if (batch > 1 && limits.some(({ kind }) => kind === 'smooth')) {
    throw new InvalidArgumentError(`batch must be 1 for window 'smooth', not ${batch}`)
  }
  return {
    options,
    windows,
    maxPermits,
    horizon: Math.min(Math.max(shortest * AHEAD, MIN_AHEAD), MAX_AHEAD),
    hold,
    mostHold: Math.max(Math.min(...periods), hold),
    concurrency,
    queue,
    batch,
    onUnavailable,
    share: shareOf(options),
    signature: JSON.stringify([windows.map(idOf), concurrency, queue, batch, onUnavailable, shares ?? 0]),
  }
}

function shareOf(options: CheckedBoxOptions): Rules | undefined {
  const { onUnavailable: policy, shares, limits, concurrency } = options
  if (!POLICIES.includes(policy)) {
    const known = POLICIES.map(name => `'${name}'`).join(', ')
    throw new InvalidArgumentError(`onUnavailable must be one of ${known}, not ${shown(policy)}`)
  }
  if (policy !== 'share') {
    if (shares !== undefined) throw new InvalidArgumentError(`shares needs onUnavailable 'share'`)
    return policy === 'open' ? rulesOf(options) : undefined
  }
  const parts = whole('shares', shares, 1, MAX_SHARES)
  return rulesOf({
    ...options,
    limits: limits.map(one => ({ ...one, limit: partOf('limit', one.limit, parts) })),
    concurrency: partOf('concurrency', concurrency, parts),
  })
}

function partOf(what: string, max: number, parts: number): number {
  const part = Math.floor(max / parts)
  if (part > 0) return part
  throw new InvalidArgumentError(`shares must be at most ${max}, the ${what}, not ${parts}`)
}
