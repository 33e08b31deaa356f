/** Durations in a bucket differ by at most a twentieth. */
const GROWTH = 1.05

/** The first bucket has all durations up to this, in milliseconds. */
const SMALLEST = 0.01

/** Returns the number of the bucket of a duration in milliseconds. */
export function bucketOf(duration: number): number {
  return duration <= SMALLEST ? 0 : Math.ceil(Math.log(duration / SMALLEST) / Math.log(GROWTH))
}

/** Counts durations in buckets: millions of them take little memory, and those of several processes can be added. */
export class Histogram {
  readonly #counts: number[] = []
  #total = 0

  /** Counts a duration of this bucket. */
  add(bucket: number): void {
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1
    this.#total++
  }

  /** Returns the duration in milliseconds that `share` (0 to 1) of all do not exceed; undefined if there are none. */
  percentile(share: number): number | undefined {
    let left = Math.max(1, Math.ceil(this.#total * share))
    for (const [bucket, count = 0] of this.#counts.entries()) {
      left -= count
      if (left <= 0) return SMALLEST * GROWTH ** bucket
    }
    return undefined
  }
}
