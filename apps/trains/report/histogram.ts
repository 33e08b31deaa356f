/** Durations of one bucket differ by at most a twentieth. */
const GROWTH = 1.05

/** Everything up to this is one bucket, in milliseconds. */
const SMALLEST = 0.01

/** The number of the bucket that a duration in milliseconds falls into. */
export function bucketOf(duration: number): number {
  return duration <= SMALLEST ? 0 : Math.ceil(Math.log(duration / SMALLEST) / Math.log(GROWTH))
}

/** Counts durations in buckets, so that millions of them take no memory and those of several processes add up. */
export class Histogram {
  readonly #counts: number[] = []
  #total = 0

  /** Counts one more duration of this bucket. */
  add(bucket: number): void {
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1
    this.#total++
  }

  /** The duration in milliseconds that `share` (0 to 1) of all stay at or below; undefined when there are none. */
  percentile(share: number): number | undefined {
    let left = Math.max(1, Math.ceil(this.#total * share))
    for (const [bucket, count = 0] of this.#counts.entries()) {
      left -= count
      if (left <= 0) return SMALLEST * GROWTH ** bucket
    }
    return undefined
  }
}
