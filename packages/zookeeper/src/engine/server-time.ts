import type { Stat } from '../index.js'

/**
 * The newest time in the replies of servers. It is behind their clock while nothing changes, and never ahead of it. It
 * does not depend on the clock of this process.
 */
export class ServerTime {
  #newest = 0

  /** In milliseconds since 1970; 0 before the first reply. */
  get now(): number {
    return this.#newest
  }

  /** Updates the time from a node's stat. */
  observe({ ctime, mtime }: Stat): void {
    this.#newest = Math.max(this.#newest, ctime, mtime)
  }
}
