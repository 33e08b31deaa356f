/** What permits cost: a number of calls, and amounts of other units, such as tokens. */
export interface Cost {
  /** Number of calls. */
  readonly n: number
  /** The amount of each other unit, in the order of their names. Left out if a limiter counts only calls. */
  readonly amounts?: readonly number[] | undefined
}

/** Returns the place of a unit in the list of units. @param unit undefined for calls. */
export function placeOf(unit: string | undefined, units: readonly string[]): number {
  if (unit === undefined) return CALLS
  const place = units.indexOf(unit)
  return place < 0 ? units.length : place
}

export const NOTHING: Cost = { n: 0 }
/** The place of calls. */
const CALLS = -1

/** Returns the amount of one unit. @param place created by `placeOf`. */
export function amountOf({ n, amounts }: Cost, place: number): number {
  return place === CALLS ? n : (amounts?.[place] ?? 0)
}

export function isSameCost(one: Cost, other: Cost): boolean {
  if (one.n !== other.n) return false
  return (
    one.amounts === other.amounts ||
    !!one.amounts?.every((amount, place) => amount === other.amounts?.[place])
  )
}

export function sumOf(one: Cost, other: Cost): Cost {
  const { amounts } = one.amounts ? one : other
  const sums = amounts?.map((_, place) => amountOf(one, place) + amountOf(other, place))
  return { n: one.n + other.n, amounts: sums }
}
