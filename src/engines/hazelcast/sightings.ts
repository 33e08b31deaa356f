import type { RequestRecord, TableRecord } from './table-record.js'

interface Sighting {
  readonly beat: string
  /** Clock time. */
  readonly at: number
}

/**
 * When this process first saw each request as it is. Members have no clock that can be read along with a change, and those
 * of clients differ; but whoever sees that a request was heard of sees it after that, so a life that is counted from the
 * sight on never ends before its holder has given up.
 */
export class Sightings {
  #seen = new Map<string, Sighting>()

  /** Notes what is new in the record, which was seen at `now`, and forgets what is not in it any more. */
  see(record: TableRecord, now: number): void {
    const seen = new Map<string, Sighting>()
    for (const { id, beat } of record.requests) {
      const before = this.#seen.get(id)
      seen.set(id, before?.beat === beat ? before : { beat, at: now })
    }
    this.#seen = seen
  }

  /** Of a request that is in the record because its session died long ago. */
  isOver({ id, beat }: RequestRecord): void {
    this.#seen.set(id, { beat, at: -Infinity })
  }

  /** When a request of the record that was seen last expires: clock time. */
  expiry({ id, life }: RequestRecord): number {
    return this.#seen.get(id)!.at + life
  }
}
