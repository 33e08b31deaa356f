import type { Waiters } from '../../base/waiters.js'
import type { PermitWaiter } from '../callers.js'
import { isSameCost } from '../../engine/limits/cost.js'
import type { Unit } from '../../engine/limits/reservation.js'
import type { BoxTerms } from './box-limiter-options.js'
import { costOf, sizeOf, type ReservedPermits } from './reserved-permits.js'
import { TryWaiter } from './box-callers.js'

/** Maximum number of units in one call to the engine. */
const MAX_UNITS = 1000
/**
 * The same with tenants, in addition to twice the part of the process: their order takes time, and a call seldom gets
 * more.
 */
const MAX_BEYOND_PART = 128
/** Maximum number of full windows of permits in one call. A waiter behind them learns its turn only later. */
const MAX_WINDOWS = 8

/** The units of a call, and their waiters. */
export interface WantedUnits {
  readonly units: readonly Unit[]
  /** The waiters without a reservation: one for each unit, unless permits are fetched in batches. */
  readonly waiters: readonly PermitWaiter[]
}

export const NOTHING: WantedUnits = { units: [], waiters: [] }

/** The state of a process for its next call. */
export interface Situation {
  readonly waiters: Waiters<PermitWaiter>
  readonly reserved: ReservedPermits
  readonly terms: BoxTerms
  /** Number of permits that the process reserves ahead, with other units than calls their share. */
  readonly part: number
  /** The number of permits that it may reserve now, if it reserves briefly: the credit of `Pace`. */
  readonly credit: number | undefined
  /** Time within which it also takes permits beyond that, in milliseconds. */
  readonly reach: number
  /** Time for which each permit must be usable, in milliseconds. */
  readonly hold: number
  /** Clock time. */
  readonly now: number
}

/** Returns the units for waiters without a reservation. Queues reserved permits that no waiter wants for return. */
export function unitOfEach(situation: Situation): WantedUnits {
  const { waiters: all, reserved, terms, part, credit, reach, now } = situation
  const sizes = reserved.sizes()
  const units: Unit[] = []
  const waiters: PermitWaiter[] = []
  const most = all.hasTenants ? Math.min(2 * part + MAX_BEYOND_PART, MAX_UNITS) : MAX_UNITS
  let wanted = 0
  let permits = 0
  let last: Unit | undefined
  const maxShare = terms.costs.share(terms.costs.max)
  for (const waiter of all) {
    const { n, cost } = waiter
    const isTry = waiter instanceof TryWaiter
    // A permit that is already reserved may be for a later instant.
    const size = sizes.size === 0 || isTry ? 0 : sizeOf(cost)
    const left = sizes.get(size) ?? 0
    if (left > 0) {
      sizes.set(size, left - 1)
      continue
    }
    permits += n
    if (units.length >= most || permits > MAX_WINDOWS * maxShare) {
      return { units, waiters }
    }
    const ahead = reserved.permits + wanted
    const isBeyond = credit === undefined ? ahead + n > Math.max(part, n) : wanted >= credit
    if (!isTry) wanted += n
    const patience = isTry ? 0 : Math.max((waiter.waitLimit?.deadline ?? Infinity) - now, 0)
    const within = Math.min(patience, isBeyond ? reach : Infinity)
    if (!last || last.within !== within || !isSameCost(last, cost)) last = { ...cost, more: 0, within }
    units.push(last)
    waiters.push(waiter)
  }
  for (const [size, count] of sizes) if (count > 0) reserved.giveBackLast(size, count)
  return { units, waiters }
}

/** Returns the units for waiters without a reservation, if permits are fetched in batches. */
export function unitsInBatches({ waiters: all, reserved, terms, part, reach, now }: Situation): WantedUnits {
  const { batch, costs } = terms
  const waiters: PermitWaiter[] = []
  const held = reserved.permits
  const { first } = reserved
  let left = held
  let laterLeft = first && first.from <= now ? left - first.left : left
  let wanted = 0
  let greatest = 1
  let onlyTries = true
  for (const waiter of all) {
    const { n } = waiter
    const isTry = waiter instanceof TryWaiter
    if (left - (isTry ? laterLeft : 0) >= n) {
      left -= n
      laterLeft = Math.min(laterLeft, left)
      continue
    }
    if (wanted + n > MAX_WINDOWS * costs.max.n) break
    wanted += n
    greatest = Math.max(greatest, n)
    if (!isTry) onlyTries = false
    waiters.push(waiter)
  }
  const size = Math.max(batch, greatest)
  // Each unit has room for any of the waiters.
  const unit = { n: greatest, more: size - greatest, within: onlyTries ? 0 : Infinity }
  const beyondPart = { ...unit, within: onlyTries ? 0 : reach }
  const count = Math.min(Math.ceil(wanted / size), MAX_UNITS)
  const unitAt = (_: unknown, index: number): Unit =>
    held + (index + 1) * size > Math.max(part, size) ? beyondPart : unit
  return { units: Array.from({ length: count }, unitAt), waiters }
}

/**
 * Returns units for waiters that have a reserved instant, because other processes may have returned earlier ones. For
 * each earlier instant, this process returns its latest one.
 */
export function earlierUnits({ waiters, reserved, terms, hold, now }: Situation): readonly Unit[] {
  if (terms.batch > 1 || !waiters.first) return []
  const sizes = reserved.sizes()
  const units: Unit[] = []
  for (const [size, instant] of reserved.lastOfSizes()) {
    // The reply may take longer than the time that such a unit would save.
    const within = instant.earliest - hold - now
    const count = Math.min(sizes.get(size)!, MAX_UNITS - units.length)
    const unit = { ...costOf(instant), more: 0, within }
    if (within > 0) units.push(...Array.from({ length: count }, () => unit))
  }
  return units
}
