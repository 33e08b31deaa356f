import { readFileSync } from 'node:fs'

/** How old a reading may be at most when a stretch begins, milliseconds: reading costs as much as a transaction. */
const OLD = 2

/**
 * How long this process was ready to run and had no processor, as Linux counts it. Elsewhere it is taken for none.
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
