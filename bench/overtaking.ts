/**
 * By how many that had asked later each caller was overtaken.
 * @param requested when each caller asked.
 * @param granted when it was granted, in the same order.
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
    // Of those served already, all but the ones that had asked before.
    counts[caller] = served - before.upTo(rank[caller]!)
    before.add(rank[caller]!)
  })
  return counts
}

/** Counts marked places up to a place in logarithmic time: a binary indexed tree. */
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
