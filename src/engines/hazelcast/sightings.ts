import type { RequestRecord, TableRecord } from './table-record.js'

interface Sighting {
  readonly beat: string
  /** Clock time. */
  readonly at: number
}

/**
 * When this process first saw each beat of each request. Members have no clock that can be read with a change, and
 * the clocks of clients differ. But a box sees a beat after the holder sent it, so a life that counts from the sight
 * never ends before the holder has given up.
 */
export class Sightings {
  #seen = new Map<string, Sighting>()

  /** Notes the new beats of a record that was seen at `now`, and forgets the requests that it has no more. */
  see(record: TableRecord, now: number): void {
    const seen = new Map<string, Sighting>()
    for (const { id, beat } of record.requests) {
      const before = this.#seen.get(id)
      seen.set(id, before?.beat === beat ? before : { beat, at: now })
    }
    this.#seen = seen
  }

  /** Notes that the session of a request died long ago. */
  isOver({ id, beat }: RequestRecord): void {
    this.#seen.set(id, { beat, at: -Infinity })
  }

  /** When a request of the newest record expires: clock time. */
  expiry({ id, life }: RequestRecord): number {
    return this.#seen.get(id)!.at + life
  }
}
