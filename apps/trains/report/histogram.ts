/** Ratio of the limits of two adjacent buckets. The durations in a bucket differ by at most 5%. */
const GROWTH = 1.05

/** Upper limit of the first bucket, in milliseconds. */
const SMALLEST = 0.01

/** Returns the number of the bucket of a duration in milliseconds. */
export function bucketOf(duration: number): number {
  return duration <= SMALLEST ? 0 : Math.ceil(Math.log(duration / SMALLEST) / Math.log(GROWTH))
}

/** Counts durations in buckets. Takes little memory for millions of them, and can count those of several processes. */
export class Histogram {
  readonly #counts: number[] = []
  #total = 0

  add(bucket: number): void {
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1
    this.#total++
  }

  /** Returns the duration that `share` (0 to 1) of all durations do not exceed, in milliseconds; undefined if empty. */
  percentile(share: number): number | undefined {
    let left = Math.max(1, Math.ceil(this.#total * share))
    for (const [bucket, count = 0] of this.#counts.entries()) {
      left -= count
      if (left <= 0) return SMALLEST * GROWTH ** bucket
    }
    return undefined
  }
}
