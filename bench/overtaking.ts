/**
 * Returns for each caller the number of later callers that were granted before it.
 * @param requested the time at which each caller asked.
 * @param granted the time at which it was granted, in the same order.
 */
export function overtaken(requested: Float64Array, granted: Float64Array): Float64Array {
  const callers = [...requested.keys()]
  const rank = new Uint32Array(requested.length)
  const byRequest = [...callers].sort((a, b) => requested[a]! - requested[b]!)
  byRequest.forEach((caller, place) => (rank[caller] = place))
  const byGrant = callers.sort((a, b) => granted[a]! - granted[b]!)
  const counts = new Float64Array(requested.length)
  const before = new PrefixCounts(requested.length)
  byGrant.forEach((caller, served) => {
    // All callers that were served before, without those that had asked earlier.
    counts[caller] = served - before.upTo(rank[caller]!)
    before.add(rank[caller]!)
  })
  return counts
}

/** Counts marked places up to a place in logarithmic time, with a binary indexed tree. */
class PrefixCounts {
  readonly #tree: Uint32Array

  constructor(places: number) {
    this.#tree = new Uint32Array(places + 1)
  }

  add(place: number): void {
    for (let node = place + 1; node < this.#tree.length; node += node & -node) this.#tree[node]!++
  }

  upTo(place: number): number {
    let count = 0
    for (let node = place + 1; node > 0; node -= node & -node) count += this.#tree[node]!
    return count
  }
}
