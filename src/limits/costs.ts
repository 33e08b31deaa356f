import { checkedInteger } from '../base/options.js'
import { InvalidArgumentError, shown } from '../base/errors.js'
import { amountOf, placeOf, type Cost } from '../engine/limits/cost.js'
import type { Limit } from '../engine/limits/definition.js'

/** Amounts by unit, such as `{ tokens: 700 }`. */
export type Amounts = Readonly<Record<string, number>>

/**
 * What permits cost: a number of calls, or an amount of each unit of the limiter, such as `{ tokens: 1200 }`, and
 * `calls` if it is not 1.
 */
export type Costs = number | Amounts

/** The name of the unit of limits without one. */
export const CALLS = 'calls'
const MAX_AMOUNT = 1e9
/** Parts of a call to which shares are rounded up. */
const FRACTION = 1024
const ONE: Cost = { n: 1 }

/** The units of a limiter, and the maximum cost of permits that are granted together. */
export class CostRules {
  /** The units besides calls. */
  readonly units: readonly string[]
  readonly max: Cost
  /** Whether it counts nothing but calls. */
  readonly #countsCalls: boolean
  /** How many calls have the share of an amount of 1, by unit. */
  readonly #calls: readonly number[]

  constructor(limits: readonly Limit[]) {
    const units = [...new Set(limits.flatMap(({ unit }) => unit ?? []))]
    const least = (unit: string | undefined): number =>
      Math.min(MAX_AMOUNT, ...limits.flatMap(limit => (limit.unit === unit ? limit.limit : [])))
    const slowest = (unit: string | undefined): number =>
      Math.max(...limits.flatMap(({ unit: its, per, limit }) => (its === unit ? per / limit : [])))
    this.units = units
    this.#countsCalls = units.length === 0
    this.max =
      units.length === 0 ? { n: least(undefined) } : { n: least(undefined), amounts: units.map(least) }
    const pauses = units.map(slowest)
    const pause = Math.max(slowest(undefined), 0) || Math.min(...pauses)
    this.#calls = pauses.map(each => each / pause)
  }

  /** @throws InvalidArgumentError unless the costs have an amount of each unit, and none is too great. */
  cost(costs: Costs = 1): Cost {
    // Most callers want one permit, a million times a second.
    return costs === 1 && this.#countsCalls ? ONE : this.#checked(costs)
  }

  #checked(costs: Costs): Cost {
    const { units, max } = this
    if (typeof costs !== 'object' || costs === null) {
      if (units.length === 0) return { n: checkedInteger('n', costs, 1, max.n) }
      throw new InvalidArgumentError(`this limiter counts ${units.join(' and ')}: pass ${example(units)}`)
    }
    const { [CALLS]: calls = 1 } = costs
    const amounts = this.#amounts(costs, [CALLS])
    const missing = units.find((_, place) => amounts[place] === undefined)
    if (missing !== undefined)
      throw new InvalidArgumentError(`${missing} is missing: pass ${example(units)}; an amount may be 0`)
    for (const [place, unit] of units.entries()) checkedInteger(unit, amounts[place], 0, max.amounts![place]!)
    const n = checkedInteger(CALLS, calls, 1, max.n)
    return units.length === 0 ? { n } : { n, amounts: amounts as number[] }
  }

  /** Returns costs from which `cost` creates this one. */
  costsOf({ n, amounts }: Cost): Costs {
    if (!amounts) return n
    const named = this.units.map((unit, place) => [unit, amounts[place]!] as const)
    return Object.fromEntries([[CALLS, n] as const, ...named])
  }

  /** Returns the settled amount of each unit; undefined for one that is left out. @throws InvalidArgumentError */
  settled(amounts: Amounts): (number | undefined)[] {
    if (typeof amounts !== 'object' || amounts === null)
      throw new InvalidArgumentError(`pass amounts such as ${example(this.units)}, not ${shown(amounts)}`)
    if (Object.hasOwn(amounts, CALLS) && this.units.length > 0)
      throw new InvalidArgumentError(`calls can't be settled; pass amounts such as ${example(this.units)}`)
    const settled = this.#amounts(amounts, [])
    for (const [place, unit] of this.units.entries())
      if (settled[place] !== undefined) checkedInteger(unit, settled[place], 0, MAX_AMOUNT)
    return settled
  }

  /**
   * The part of its turn that a cost takes, as a number of calls: of the unit of which it takes the greatest part. So
   * tenants share the unit that each needs most (A. Ghodsi et al., Multi-Resource Fair Queueing for Packet Processing,
   * SIGCOMM 2012).
   */
  share({ n, amounts = [] }: Cost): number {
    const most = amounts.reduce((part, amount, place) => Math.max(part, amount * this.#calls[place]!), n)
    // Sums of such shares are exact.
    return Math.ceil(most * FRACTION) / FRACTION
  }

  /** Returns the number of calls that have the share of an amount of one unit. */
  callsOf(amount: number, unit: string | undefined): number {
    return unit === undefined ? amount : amount * this.#calls[this.units.indexOf(unit)]!
  }

  /** Returns the limit that a cost exceeds, and its amount in words; undefined if there is none. */
  excess(cost: Cost): readonly [max: number, wanted: string] | undefined {
    for (const unit of [undefined, ...this.units]) {
      const place = placeOf(unit, this.units)
      const [amount, max] = [amountOf(cost, place), amountOf(this.max, place)]
      if (amount > max) return [max, `${amount} ${unit ?? 'permits'}`]
    }
    return undefined
  }

  /** The amount of each unit; undefined for one that is missing. @throws InvalidArgumentError for another unit. */
  #amounts(costs: Amounts, others: readonly string[]): (number | undefined)[] {
    const known = [...others, ...this.units]
    const unknown = Object.keys(costs).find(name => !known.includes(name))
    if (unknown !== undefined) {
      const hint =
        this.units.length === 0 ? 'this limiter counts only calls' : `it must be one of ${known.join(', ')}`
      throw new InvalidArgumentError(`unknown unit ${shown(unknown)}; ${hint}`)
    }
    return this.units.map(unit => (Object.hasOwn(costs, unit) ? costs[unit] : undefined))
  }
}

function example(units: readonly string[]): string {
  return `{ ${units.map(unit => `${unit}: 100`).join(', ')} }`
}
