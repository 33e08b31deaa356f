interface Heartbeat {
  readonly id: string
  readonly heartbeat: string
}

interface Sighting {
  readonly heartbeat: string
  /** The clock time at which it was first seen. */
  readonly at: number
  /** The last round in which the request was seen. */
  round: number
}

/**
 * Records when this process first saw each heartbeat of each request. Members have no clock that can be read with a
 * change, and the clocks of clients differ. But a box sees a heartbeat after the holder has sent it, so a TTL that
 * counts from then never ends before the holder's own deadline.
 */
export class Sightings {
  readonly #seen = new Map<string, Sighting>()
  #round = 0

  /** Records the new heartbeats of requests that were seen at `now`, and forgets all others. */
  see(requests: readonly Heartbeat[], now: number): void {
    const round = ++this.#round
    for (const { id, heartbeat } of requests) {
      const before = this.#seen.get(id)
      if (before?.heartbeat === heartbeat) before.round = round
      else this.#seen.set(id, { heartbeat, at: now, round })
    }
    if (this.#seen.size === requests.length) return
    for (const [id, sighting] of this.#seen) if (sighting.round !== round) this.#seen.delete(id)
  }

  /** Records that the session of a request died long ago, if the request was seen by this clock time. */
  markDead({ id, heartbeat }: Heartbeat, by: number): void {
    const { at, round } = this.#seen.get(id)!
    if (at <= by) this.#seen.set(id, { heartbeat, at: -Infinity, round })
  }

  /** Returns the clock time at which a request that was seen expires. */
  expiry({ id, ttl }: Heartbeat & { readonly ttl: number }): number {
    return this.#seen.get(id)!.at + ttl
  }
}
