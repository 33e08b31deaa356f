/** Interval between two measurements, in milliseconds. */
const SAMPLE_INTERVAL = 1000

/**
 * Measures the peak of this process's resident memory, in bytes. Samples it, because the peak that the operating system
 * reports includes that of the parent process.
 */
export class PeakMemory {
  readonly #timer = setInterval(() => this.#sample(), SAMPLE_INTERVAL).unref()
  #peak = 0

  /** Stops measuring and returns the peak, in bytes. */
  end(): number {
    clearInterval(this.#timer)
    this.#sample()
    return this.#peak
  }

  #sample(): void {
    this.#peak = Math.max(this.#peak, process.memoryUsage.rss())
  }
}
