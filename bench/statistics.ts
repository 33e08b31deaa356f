/** Median, minimum and maximum of several rounds. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** Waits of callers, in milliseconds. */
export interface WaitSummary {
  readonly p50: number
  readonly p99: number
  readonly worst: number
}

/** Returns median, minimum and maximum. @param values at least one. */
export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length / 2
  const median = Number.isInteger(middle)
    ? (sorted[middle - 1]! + sorted[middle]!) / 2
    : sorted[Math.floor(middle)]!
  return { median, min: sorted[0]!, max: sorted.at(-1)! }
}

/**
 * Returns the smallest value that at least the given part of all values does not exceed.
 * @param sorted at least one value.
 * @param part from 0 to 1.
 */
export function percentile(sorted: Float64Array, part: number): number {
  return sorted[Math.max(Math.ceil(part * sorted.length) - 1, 0)]!
}

/** Returns percentiles of the values; undefined if there are none. */
export function summary(values: Float64Array): WaitSummary | undefined {
  if (values.length === 0) return undefined
  const sorted = values.slice().sort()
  return { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99), worst: sorted.at(-1)! }
}
