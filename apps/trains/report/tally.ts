import { changesOf, type LocationCounts } from '../domain/location.js'
import type { Acknowledgement } from '../protocol.js'
import { ALREADY_APPLIED } from '../worker/message-processor.js'
import { Histogram } from './histogram.js'

/** The events that each change the counters of a location once. */
const CHANGES = ['created', 'moved', 'deleted'] as const

/** Counts what the workers acknowledge. */
export class Tally {
  readonly #events = new Map<string, number>()
  readonly #waits = new Histogram()
  #skipped = 0

  /** Counts an acknowledgement. */
  add({ events, waits }: Acknowledgement): void {
    for (const event of events) this.#events.set(event, (this.#events.get(event) ?? 0) + 1)
    for (const wait of waits) this.#waits.add(wait)
  }

  /** Counts a message that an earlier run has applied. */
  skip(): void {
    this.#skipped++
  }

  /** How long messages waited for their locks. */
  get lockWaits(): Histogram {
    return this.#waits
  }

  /**
   * How many messages changed nothing, the locations being as given. Where a worker applied a message and died before
   * it could say so, or an earlier run applied it, no event shows whether it was ignored. But each change that is
   * counted at the locations and that no event reports was one of those messages.
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
