interface Sample {
  readonly at: number
  readonly done: number
}

/** Period that the rate covers, in milliseconds. */
const SAMPLE_PERIOD = 5000

/** Measures the rate of the last five seconds. */
export class RateMeter {
  readonly #samples: Sample[] = []

  /** Records the number done at a time in milliseconds, and returns the rate per second. */
  rate(at: number, done: number): number {
    this.#samples.push({ at, done })
    while (this.#samples.length > 2 && this.#samples[1]!.at <= at - SAMPLE_PERIOD) this.#samples.shift()
    const first = this.#samples[0]!
    return at > first.at ? ((done - first.done) / (at - first.at)) * 1000 : 0
  }
}
