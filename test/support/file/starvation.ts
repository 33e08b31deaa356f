import { readFileSync } from 'node:fs'

/** Maximum age of a reading that is used again, in milliseconds. A reading costs as much as a transaction. */
const OLD = 2

/**
 * Time for which this process was ready to run and had no processor, as Linux counts it. On other systems it is 0.
 */
export class Starvation {
  #readAt = -Infinity
  #total = 0

  /** Milliseconds since the process started, up to OLD milliseconds ago. */
  about(now: number): number {
    return now - this.#readAt < OLD ? this.#total : this.exact(now)
  }

  /** Milliseconds since the process started. */
  exact(now: number): number {
    this.#readAt = now
    try {
      this.#total = Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[1]) / 1e6
    } catch {
      // Not Linux, or a kernel that does not count.
    }
    return this.#total
  }
}
