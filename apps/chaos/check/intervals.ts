/**
 * A period during which a client was inside, in nanoseconds on the machine's monotonic clock, which all processes
 * share.
 */
export interface Interval {
  readonly who: string
  readonly from: bigint
  readonly to: bigint
}

/** Returns pairs that were inside at the same time. */
export function overlaps<I extends Interval>(intervals: readonly I[]): (readonly [I, I])[] {
  const found: (readonly [I, I])[] = []
  let last: I | undefined
  for (const interval of inOrder(intervals)) {
    if (last && interval.from < last.to) found.push([last, interval])
    if (!last || interval.to > last.to) last = interval
  }
  return found
}

/** Sorts intervals by their start. */
export function inOrder<I extends Interval>(intervals: readonly I[]): I[] {
  return [...intervals].sort((one, other) => (one.from < other.from ? -1 : one.from > other.from ? 1 : 0))
}
