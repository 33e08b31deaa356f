/** Something to be done at some places. */
export interface Candidate {
  /** How many items it consists of. */
  readonly size: number
  readonly places: readonly string[]
}

/**
 * Chooses what to do together: the first candidate, and those that have the fewest places which that one hasn't, the
 * earlier ones first; together no more than `most` items. Candidates at places that are to be avoided are left out, so
 * there may be none.
 */
export function neighbours<C extends Candidate>(
  candidates: Iterable<C>,
  most: number,
  avoided: Iterable<ReadonlySet<string>>,
): C[] {
  const avoid = [...avoided]
  let chosen: C[] | undefined
  let places = new Set<string>()
  let size = 0
  /** The others, by how many places they have that the first has not. */
  const distant: C[][] = []
  for (const candidate of candidates) {
    if (avoid.some(some => candidate.places.some(place => some.has(place)))) continue
    if (!chosen) {
      chosen = [candidate]
      places = new Set(candidate.places)
      size = candidate.size
      continue
    }
    let distance = 0
    for (const place of candidate.places) if (!places.has(place)) distance++
    if (distance > 0) (distant[distance] ??= []).push(candidate)
    else if (size + candidate.size <= most) {
      chosen.push(candidate)
      size += candidate.size
    }
    if (size >= most) break
  }
  if (!chosen) return []
  for (const candidate of distant.flat()) {
    if (size >= most) break
    if (size + candidate.size > most) continue
    chosen.push(candidate)
    size += candidate.size
  }
  return chosen
}
