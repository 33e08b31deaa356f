import type { RequestRecord, TableRecord } from './table-record.js'

interface Sighting {
  readonly heartbeat: string
  /** As clock time. */
  readonly at: number
}

/**
 * When this process first saw each heartbeat of each request. Members have no clock that can be read with a change, and
 * the clocks of clients differ. But a box sees a heartbeat after the holder has sent it, so a TTL that counts from then
 * never ends before the holder's own deadline.
 */
export class Sightings {
  #seen = new Map<string, Sighting>()

  /** Records the new heartbeats of a record that was seen at `now`, and forgets requests that are no longer in it. */
  see(record: TableRecord, now: number): void {
    const seen = new Map<string, Sighting>()
    for (const { id, heartbeat } of record.requests) {
      const before = this.#seen.get(id)
      seen.set(id, before?.heartbeat === heartbeat ? before : { heartbeat, at: now })
    }
    this.#seen = seen
  }

  /** Records that the session of a request died long ago. */
  markDead({ id, heartbeat }: RequestRecord): void {
    this.#seen.set(id, { heartbeat, at: -Infinity })
  }

  /** When a request of the newest record expires, as clock time. */
  expiry({ id, ttl }: RequestRecord): number {
    return this.#seen.get(id)!.at + ttl
  }
}
