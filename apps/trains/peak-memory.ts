/** How often a process looks how much memory it uses, in milliseconds. */
const LOOKED_EVERY = 1000

/**
 * The most memory that this process has used, as the operating system counts it, in bytes. It looks every second,
 * because the system's own peak is no less than that of the process that started this one.
 */
export class PeakMemory {
  readonly #timer = setInterval(() => this.#look(), LOOKED_EVERY).unref()
  #peak = 0

  /** The peak up to now. The process looks no further. */
  end(): number {
    clearInterval(this.#timer)
    this.#look()
    return this.#peak
  }

  #look(): void {
    this.#peak = Math.max(this.#peak, process.memoryUsage.rss())
  }
}
