import { checkedInteger } from '../../base/options.js'
import { LEASE_BOUNDS } from '../../core/lock-options.js'
import { milliseconds, type Duration } from '../../base/duration.js'
import { InvalidArgumentError } from '../../base/errors.js'
import { idOf, implies, type WindowDefinition } from '../../engine/limits/definition.js'
import {
  checkOneOf,
  checkedOptions,
  rulesOf,
  withLimit,
  type CheckedOptions,
  type Limits,
} from '../limit-options.js'
import { FARTHEST } from '../../engine/limits/reserve-permits.js'
import type { Rules } from '../counter.js'
import { CostRules } from '../costs.js'

/** Options of a limiter that all processes on the same engine share. */
export type BoxLimiterOptions = {
  /** Maximum variation of the time from the grant of a permit to the arrival of its call; default 0. */
  jitter?: Duration | undefined
  /**
   * Maximum number of permits in use in all processes, which callers have not released: 1 to 10,000; default: no
   * maximum. While processes use different maximums, each permit takes its part of the maximum of its own process.
   */
  concurrency?: number | undefined
  /**
   * Time for which a permit in use counts for `concurrency` without a renewal, 20 ms to a day; default 8 s. A process
   * renews it until the release. If the process dies, others get the permit after this time, or at once if the engine
   * notices the death.
   */
  lease?: Duration | undefined
  /** Maximum number of waiting callers of this process; default: no maximum. Further ones get a BusyError. */
  queue?: number | undefined
  /** The same for each tenant without a group, and for each group. */
  tenantQueue?: number | undefined
  /**
   * Number of permits to fetch together, if they are available, for callers of this process that come within the expiry
   * time of the permits; default 1. It makes high rates cheap. Unused permits are returned. Not for `'smooth'`.
   */
  batch?: number | undefined
  /**
   * The behaviour while the engine is unreachable. `'error'`, the default, rejects with its error. `'closed'` admits
   * no caller, and waiters keep waiting. `'open'` uses a limiter of this process alone, with the full limits. `'share'`
   * uses one with this process's part of each limit.
   */
  onUnavailable?: 'error' | 'open' | 'closed' | 'share' | undefined
  /** The number of parts into which `'share'` divides each limit: the number of processes. */
  shares?: number | undefined
} & Limits

/** The options, each of which was checked by itself. */
interface CheckedBoxOptions extends CheckedOptions {
  /** The lease of a permit in use, in milliseconds. */
  readonly lease: number
  readonly batch: number
  readonly onUnavailable: NonNullable<BoxLimiterOptions['onUnavailable']>
  readonly shares: number | undefined
}

/** The checked options, and the values that follow from them. */
export interface BoxTerms extends CheckedBoxOptions {
  readonly windows: readonly WindowDefinition[]
  readonly costs: CostRules
  /** Maximum time ahead for reservations, in milliseconds. */
  readonly horizon: number
  /** Minimum and maximum time for which a permit can be used, in milliseconds. */
  readonly hold: number
  readonly maxHold: number
  /** The limits of this process alone while the engine is unreachable, if it has any. */
  readonly share: Rules | undefined
  /** Equal for equal options only. */
  readonly signature: string
}

/** Minimum hold: the part of the shortest window for which a reserved permit can be used. */
const HOLD = 0.02
/** The bounds of the minimum hold, in milliseconds: replies take time, and no caller needs a longer hold. */
const MIN_HOLD = 5
const MAX_HOLD = 1000
/** Maximum part of a calendar's period for which a permit can be used. No permit is granted in the last part. */
const PART_OF_PERIOD = 0.5
/**
 * Number of windows for which permits are reserved ahead, within these bounds in milliseconds. A process reserves no
 * more than its part of one window, so this is enough for more processes than the limit has permits. Up to that number,
 * processes are served in the order of their requests.
 */
const AHEAD = 5
const MIN_AHEAD = 500
export const MAX_AHEAD = FARTHEST / 2

const BOX_NAMES = [
  'jitter',
  'concurrency',
  'lease',
  'queue',
  'tenantQueue',
  'batch',
  'onUnavailable',
  'shares',
]
const POLICIES = ['error', 'open', 'closed', 'share']
const MAX_SHARES = 1e6
/** With a greater number, the rounding of equal parts would admit one more permit. */
const MAX_CONCURRENCY = 10_000
/**
 * Default lease, in milliseconds. It is shorter than that of a lock, because a lost slot stops no call, and all
 * processes wait for the slots of a dead one.
 */
const DEFAULT_LEASE = 8000

/** Checks the options of a limiter of a box. @throws InvalidArgumentError */
export function boxTerms(options: BoxLimiterOptions): BoxTerms {
  const checked = checkedOptions(options, BOX_NAMES, MAX_CONCURRENCY)
  const { batch = 1, onUnavailable = 'error', shares, lease = DEFAULT_LEASE } = options
  if (options.lease !== undefined && checked.concurrency === Infinity)
    throw new InvalidArgumentError('lease needs concurrency: without it, permits in use have no lease')
  const checkedLease = milliseconds('lease', lease, LEASE_BOUNDS)
  return termsFrom({ ...checked, batch, onUnavailable, shares, lease: checkedLease })
}

/**
 * Returns the terms with another limit.
 * @param per selects one of several limits, together with the unit.
 * @throws InvalidArgumentError
 */
export function changedTerms(
  terms: BoxTerms,
  limit: number,
  per: Duration | undefined,
  unit: string | undefined,
): BoxTerms {
  return termsFrom(withLimit(terms, limit, per, unit))
}

/** Whether permits that are reserved under the first terms also keep the limits of the others. */
export function keeps(one: BoxTerms, other: BoxTerms): boolean {
  return other.windows.every(window => one.windows.some(its => implies(its, window)))
}

/** Returns the options with all values that follow from them. */
function termsFrom(options: CheckedBoxOptions): BoxTerms {
  const { limits, jitter, queue, tenantQueue, concurrency, lease, onUnavailable, shares } = options
  const shortest = Math.min(...limits.map(({ per }) => per))
  const hold = Math.max(Math.min(shortest * HOLD, MAX_HOLD), MIN_HOLD)
  const all = limits.map(limit => ({ ...limit, hold, guard: jitter + hold }))
  // Duplicate limits are removed.
  const windows = [...new Map(all.map(window => [idOf(window), window])).values()]
  const calendars = windows.filter(({ kind }) => kind === 'calendar')
  for (const { per, guard } of calendars) {
    if (guard >= per) {
      throw new InvalidArgumentError(
        `per must be more than ${guard} ms for window 'calendar' of a box, jitter plus expiry time, not ${per} ms`,
      )
    }
  }
  const periods = calendars.map(({ per }) => (per - jitter) * PART_OF_PERIOD)
  const costs = new CostRules(limits)
  const batch = checkedInteger('batch', options.batch, 1, costs.max.n)
  const [unit] = costs.units
  if (batch > 1 && unit !== undefined)
    throw new InvalidArgumentError(`batch must be 1 for a limit of ${unit}, not ${batch}`)
  if (batch > 1 && limits.some(({ kind }) => kind === 'smooth')) {
    throw new InvalidArgumentError(`batch must be 1 for window 'smooth', not ${batch}`)
  }
  return {
    ...options,
    windows,
    costs,
    horizon: Math.min(Math.max(shortest * AHEAD, MIN_AHEAD), MAX_AHEAD),
    hold,
    maxHold: Math.max(Math.min(...periods), hold),
    share: shareOf(options),
    signature: JSON.stringify([
      windows.map(idOf),
      concurrency,
      lease,
      queue,
      tenantQueue,
      batch,
      onUnavailable,
      shares ?? 0,
    ]),
  }
}

function shareOf(options: CheckedBoxOptions): Rules | undefined {
  const { onUnavailable: policy, shares, limits, concurrency } = options
  checkOneOf('onUnavailable', policy, POLICIES)
  if (policy !== 'share') {
    if (shares !== undefined) throw new InvalidArgumentError(`shares needs onUnavailable 'share'`)
    return policy === 'open' ? rulesOf(options) : undefined
  }
  const parts = checkedInteger('shares', shares, 1, MAX_SHARES)
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
