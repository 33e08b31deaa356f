/** A time that a client spent inside, on the machine's monotonic clock, which all processes share: nanoseconds. */
export interface Interval {
  readonly who: string
  readonly from: bigint
  readonly to: bigint
}

/** Pairs that were inside at once. */
export function overlaps<I extends Interval>(intervals: readonly I[]): (readonly [I, I])[] {
  const found: (readonly [I, I])[] = []
  let last: I | undefined
  for (const interval of inOrder(intervals)) {
    if (last && interval.from < last.to) found.push([last, interval])
    if (!last || interval.to > last.to) last = interval
  }
  return found
}

/** From the first that came in to the last. */
export function inOrder<I extends Interval>(intervals: readonly I[]): I[] {
  return [...intervals].sort((one, other) => (one.from < other.from ? -1 : one.from > other.from ? 1 : 0))
}
