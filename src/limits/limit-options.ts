import type { Clock } from '../base/clock.js'
import { milliseconds, type Duration } from '../base/duration.js'
import { InvalidArgumentError, shown } from '../base/errors.js'
import type { Tenant } from '../base/lane.js'
import {
  checkedInteger,
  checkKey,
  checkOptions,
  checkSignal,
  checkTimeZone,
  spelledZone,
} from '../base/options.js'
import { DAY } from '../engine/limits/calendar-periods.js'
import { windowOf, type Limit } from '../engine/limits/definition.js'
import { placeOf } from '../engine/limits/cost.js'
import type { Rules } from './counter.js'
import { CALLS, CostRules } from './costs.js'

/** A maximum number of permits in a period of time. */
export interface LimitOptions {
  /** Maximum number of permits: an integer, 1 to a billion. */
  limit: number
  /** Length of the window: 1 ms to 366 days. */
  per: Duration
  /**
   * The windows to which the limit applies. `'sliding'`, the default: any interval of this length. `'calendar'`: each
   * period of the wall clock. `'smooth'`: any interval, with evenly spaced permits.
   */
  window?: 'sliding' | 'calendar' | 'smooth' | undefined
  /** The time zone of the days, such as `'Europe/Berlin'`, for a calendar of `'1d'`. Default: UTC. */
  timeZone?: string | undefined
  /** What it counts, such as `'tokens'`; default `'calls'`. Callers pass an amount of each unit. */
  unit?: string | undefined
}

/** Options of a limiter besides its limits. */
interface CommonOptions {
  /** Maximum variation of the time from the grant of a permit to the arrival of its call; default 0. */
  jitter?: Duration | undefined
  /** Maximum number of permits in use, which callers have not released; default: no maximum. */
  concurrency?: number | undefined
  /** Maximum number of waiting callers; default: no maximum. Further ones get a BusyError. */
  queue?: number | undefined
  /** The same for each tenant without a group, and for each group. */
  tenantQueue?: number | undefined
  /** The clock; default: the system's. With a VirtualClock, a test controls the time. */
  clock?: Clock | undefined
}

/** The options of one limit, or a list of several in `limits`, which apply together. */
export type Limits =
  | (LimitOptions & { limits?: never })
  | ({ limits: readonly LimitOptions[] } & { [name in keyof LimitOptions]?: never })

/** The options of a limiter. */
export type LimiterOptions = CommonOptions & Limits

/** The options of any kind of limiter, unchecked. */
type PassedOptions = Omit<CommonOptions, 'clock'> &
  Partial<LimitOptions> & { limits?: readonly LimitOptions[] | undefined }

/** The checked options of a limiter. */
export interface CheckedOptions {
  /** All of them apply together. */
  readonly limits: readonly Limit[]
  /** Milliseconds. */
  readonly jitter: number
  /** Infinity for no maximum. */
  readonly concurrency: number
  /** Infinity for no maximum. */
  readonly queue: number
  readonly tenantQueue: number
}

/** Options of a request for permits. */
export interface AcquireOptions {
  /** Maximum wait; default: no limit. 0: don't wait. */
  wait?: Duration | undefined
  /** Aborts the wait. It has no effect on a permit. */
  signal?: AbortSignal | undefined
  /** An integer; waiters with a greater one come first, among those of its tenant. Default 0. */
  priority?: number | undefined
  /**
   * On whose behalf it is called. While callers of several tenants wait, the tenants take turns, so that each gets
   * permits in proportion to its weight. Callers without a tenant count as those of one more tenant.
   */
  tenant?: string | undefined
  /** The weight of the tenant, from 0.001 to 1,000, until a caller of this tenant has another one. Default 1. */
  weight?: number | undefined
  /** The tenants of a group share the turns of one tenant with a weight of 1. */
  group?: string | undefined
}

/** The options of a request about its tenant. */
export type TenantOptions = Pick<AcquireOptions, 'tenant' | 'weight' | 'group'>

/** The checked options of a request for permits. */
export interface Terms {
  readonly wait: number
  readonly signal: AbortSignal | undefined
  readonly priority: number
  readonly tenant: Tenant | undefined
}

const MAX_PERMITS = 1e9
/** Maximum length of a window and of a pause, in milliseconds. */
export const LEAP_YEAR = 366 * DAY
const PER_BOUNDS = { min: 1, max: LEAP_YEAR }
const JITTER_BOUNDS = { min: 0, max: DAY }
export const WAIT_BOUNDS = { min: 0, max: Infinity }
const MAX_PRIORITY = 1e6
const MIN_WEIGHT = 0.001
const MAX_WEIGHT = 1000

const LIMIT_NAMES = ['limit', 'per', 'window', 'timeZone', 'unit'] as const
const COMMON_NAMES = ['jitter', 'concurrency', 'queue', 'tenantQueue', 'clock']
const TENANT_NAMES = ['tenant', 'weight', 'group']
const ACQUIRE_NAMES = ['wait', 'signal', 'priority', ...TENANT_NAMES]
const WINDOWS = ['sliding', 'calendar', 'smooth']

const NO_TERMS: Terms = { wait: Infinity, signal: undefined, priority: 0, tenant: undefined }

/**
 * Checks the options of a limiter.
 * @param names the options that the limiter may have besides its limits.
 * @throws InvalidArgumentError
 */
export function checkedOptions(
  options: PassedOptions,
  names: readonly string[] = COMMON_NAMES,
  maxConcurrency = MAX_PERMITS,
): CheckedOptions {
  checkOptions(options, ['limits', ...LIMIT_NAMES, ...names], `{ limit: 10, per: '1m' }`)
  // An option of one limit whose value is undefined counts as absent.
  const { limits, jitter = 0, concurrency, queue, tenantQueue, ...one } = options
  const beside = limits && LIMIT_NAMES.find(name => one[name] !== undefined)
  if (beside) {
    throw new InvalidArgumentError(
      `give either limits or ${beside}, not both: put ${beside} into each limit of the list`,
    )
  }
  const checkedJitter = milliseconds('jitter', jitter, JITTER_BOUNDS)
  return {
    limits: limits === undefined ? [checkedLimit(one, checkedJitter)] : checkedLimits(limits, checkedJitter),
    jitter: checkedJitter,
    concurrency:
      concurrency === undefined ? Infinity : checkedInteger('concurrency', concurrency, 1, maxConcurrency),
    queue: queue === undefined ? Infinity : checkedInteger('queue', queue, 0, MAX_PERMITS),
    tenantQueue:
      tenantQueue === undefined ? Infinity : checkedInteger('tenantQueue', tenantQueue, 0, MAX_PERMITS),
  }
}

/** The rules of a limiter of this process. */
export function rulesOf({ limits, jitter, concurrency, queue, tenantQueue }: CheckedOptions): Rules {
  const costs = new CostRules(limits)
  return {
    windows: limits.map(limit => windowOf(limit, jitter)),
    places: limits.map(({ unit }) => placeOf(unit, costs.units)),
    costs,
    concurrency,
    queue,
    tenantQueue,
  }
}

/**
 * Returns the options with another limit.
 * @param per selects one of several limits, together with the unit.
 * @throws InvalidArgumentError
 */
export function withLimit<T extends CheckedOptions>(
  options: T,
  limit: number,
  per: Duration | undefined,
  unit: string | undefined,
): T {
  const checked = checkedInteger('limit', limit, 1, MAX_PERMITS)
  const meant = indexOfLimit(options.limits, per, unit)
  const limits = options.limits.map((one, index) => (index === meant ? { ...one, limit: checked } : one))
  return { ...options, limits }
}

function checkedLimits(limits: unknown, jitter: number): readonly Limit[] {
  if (!Array.isArray(limits)) {
    throw new InvalidArgumentError(`limits must be an array of limits, not ${shown(limits)}`)
  }
  if (limits.length === 0) throw new InvalidArgumentError('limits must have at least one limit')
  return limits.map((limit: LimitOptions) => {
    checkOptions(limit, LIMIT_NAMES)
    return checkedLimit(limit, jitter)
  })
}

function checkedLimit(options: Partial<LimitOptions>, jitter: number): Limit {
  const { window: kind = 'sliding', timeZone, unit = CALLS } = options
  const limit = checkedInteger('limit', options.limit, 1, MAX_PERMITS)
  const per = milliseconds('per', options.per, PER_BOUNDS)
  if (timeZone !== undefined && (kind !== 'calendar' || per !== DAY)) {
    throw new InvalidArgumentError(`timeZone needs window 'calendar' and per '1d'`)
  }
  checkOneOf('window', kind, WINDOWS)
  if (kind === 'calendar') {
    if (!Number.isInteger(per)) {
      throw new InvalidArgumentError(
        `per must be whole milliseconds for window 'calendar', not ${shown(options.per)}`,
      )
    }
    if (jitter >= per) {
      throw new InvalidArgumentError(`jitter must be less than per for window 'calendar', not ${jitter} ms`)
    }
    if (timeZone !== undefined) checkTimeZone(timeZone)
  }
  checkKey('unit', unit)
  return {
    kind,
    limit,
    per,
    timeZone: timeZone === undefined ? '' : spelledZone(timeZone),
    unit: unit === CALLS ? undefined : unit,
  }
}

/**
 * Returns the index of a limit.
 * @param per its window; undefined for any. @param unit its unit; undefined for any.
 * @throws InvalidArgumentError that lists the limits, unless exactly one matches.
 */
function indexOfLimit(limits: readonly Limit[], per: Duration | undefined, unit: string | undefined): number {
  const length = per === undefined ? undefined : milliseconds('per', per, PER_BOUNDS)
  const unitOf = (limit: Limit): string => limit.unit ?? CALLS
  const meant = limits.flatMap((limit, index) =>
    (length === undefined || limit.per === length) && (unit === undefined || unitOf(limit) === unit)
      ? [index]
      : [],
  )
  if (meant.length === 1) return meant[0]!
  const named = limits.some(limit => limit.unit !== undefined)
  const there = limits.map(limit => `${limit.limit} ${named ? `${unitOf(limit)} ` : ''}in ${limit.per} ms`)
  const given = named ? `${shown(per)}, ${shown(unit)}` : shown(per)
  throw new InvalidArgumentError(
    `per${named ? ' and unit' : ''} must be that of one of these limits: ${there.join(', ')}; not ${given}`,
  )
}

/** Checks the options of a request for permits. @throws InvalidArgumentError */
export function termsOf(options: AcquireOptions | undefined): Terms {
  if (options === undefined) return NO_TERMS
  checkOptions(options, ACQUIRE_NAMES, `{ wait: '5s' }`)
  const { wait = Infinity, signal, priority = 0 } = options
  checkSignal(signal)
  return {
    wait: milliseconds('wait', wait, WAIT_BOUNDS),
    signal,
    priority: checkedInteger('priority', priority, -MAX_PRIORITY, MAX_PRIORITY),
    tenant: checkedTenant(options),
  }
}

/** Returns the options of a request with these terms. @param wait milliseconds. */
export function optionsOf({ signal, priority, tenant }: Terms, wait: number): AcquireOptions {
  return { wait, signal, priority, tenant: tenant?.name, weight: tenant?.weight, group: tenant?.group }
}

/** Checks the options about a tenant, and no others. @throws InvalidArgumentError */
export function tenantOf(options: TenantOptions | undefined): Tenant | undefined {
  if (options === undefined) return undefined
  checkOptions(options, TENANT_NAMES, `{ tenant: 'acme' }`)
  return checkedTenant(options)
}

function checkedTenant({ tenant: name, weight = 1, group }: TenantOptions): Tenant | undefined {
  if (name === undefined) {
    const beside = [weight !== 1 && 'weight', group !== undefined && 'group'].find(Boolean)
    if (beside) throw new InvalidArgumentError(`${beside} needs tenant`)
    return undefined
  }
  checkKey('tenant', name)
  if (group !== undefined) checkKey('group', group)
  if (typeof weight !== 'number' || !(weight >= MIN_WEIGHT && weight <= MAX_WEIGHT)) {
    throw new InvalidArgumentError(
      `weight must be a number from ${MIN_WEIGHT} to ${MAX_WEIGHT}, not ${shown(weight)}`,
    )
  }
  return { name, weight, group }
}

/** @throws InvalidArgumentError unless the value is one of these. */
export function checkOneOf(option: string, value: unknown, known: readonly unknown[]): void {
  if (known.includes(value)) return
  const names = known.map(name => `'${String(name)}'`).join(', ')
  throw new InvalidArgumentError(`${option} must be one of ${names}, not ${shown(value)}`)
}
