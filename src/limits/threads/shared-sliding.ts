import type { RingReader } from './ring-reader.js'
import { SharedWindow, type SharedUse } from './shared-window.js'

/** At most `limit` permits in any interval: the grant that is `limit` grants earlier must be at least that old. */
export class SharedSliding extends SharedWindow {
  /** Milliseconds, including the guard for jitter. */
  readonly #memory: number

  /** @param memory time for which a permit counts, in milliseconds. */
  constructor(limit: number, memory: number, reader: RingReader) {
    super(limit, reader)
    this.#memory = memory
  }

  readyAt(head: number, now: number, wanted: number, _others: number): number {
    // Beyond the limit, each permit follows the one `limit` before it by one window.
    const windows = this.windowsBefore(wanted)
    const grant = this.grantBefore(head, wanted, windows)
    return this.reader.timeOf(grant, head, now) + this.#memory * (windows + 1)
  }

  use(head: number, now: number): SharedUse {
    const memory = this.#memory
    const { count, oldest } = this.reader.recent(head, this.limit, now, time => now - time < memory)
    return { used: count, resetIn: count === 0 ? 0 : oldest + memory - now }
  }

  countsFrom(now: number): number {
    return now - this.#memory
  }
}
