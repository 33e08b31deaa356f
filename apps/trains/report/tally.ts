import { changesOf, type LocationCounts } from '../domain/location.js'
import type { Acknowledgement } from '../protocol.js'
import { ALREADY_APPLIED } from '../worker/message-processor.js'
import { Histogram } from './histogram.js'

/** The events that change the counters of locations. */
const CHANGES = ['created', 'moved', 'deleted'] as const

/** Counts the acknowledged messages. */
export class Tally {
  readonly #events = new Map<string, number>()
  readonly #waits = new Histogram()
  #skipped = 0

  /** Counts an acknowledgement. */
  add({ events, waits }: Acknowledgement): void {
    for (const event of events) this.#events.set(event, (this.#events.get(event) ?? 0) + 1)
    for (const wait of waits) this.#waits.add(wait)
  }

  /** Counts a message that the resumed run has applied. */
  skip(): void {
    this.#skipped++
  }

  /** The waits of messages for their locks. */
  get lockWaits(): Histogram {
    return this.#waits
  }

  /**
   * Returns the number of messages that changed nothing, given the final locations. If a worker died before it could
   * acknowledge a message, or an earlier run applied it, no event says whether the message was ignored. One of these
   * messages made each change that the locations count and no event reports; the others were ignored.
   */
  ignored(locations: Iterable<LocationCounts>): number {
    const { created, moved, deleted } = changesOf(locations)
    const reported = CHANGES.reduce((sum, event) => sum + this.#count(event), 0)
    const unreported = this.#count(ALREADY_APPLIED) + this.#skipped
    const changesUnreported = Math.min(unreported, Math.max(0, created + moved + deleted - reported))
    return this.#count('ignored') + unreported - changesUnreported
  }

  #count(event: string): number {
    return this.#events.get(event) ?? 0
  }
}
