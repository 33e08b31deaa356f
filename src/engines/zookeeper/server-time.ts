import type { Stat } from 'signalbox-zookeeper'

/**
 * The newest time that servers have told in their answers. It is behind their clock for as long as nothing has changed,
 * and never ahead of it, and the clock of this process does not matter.
 */
export class ServerTime {
  #newest = 0

  /** Milliseconds since 1970; 0 before the first answer. */
  get now(): number {
    return this.#newest
  }

  /** Has seen what a server knows of a node. */
  saw({ ctime, mtime }: Stat): void {
    this.#newest = Math.max(this.#newest, ctime, mtime)
  }
}
