/** What happened at a location so far. */
export interface LocationCounts {
  /** Trains that began here. */
  readonly created: number
  /** Trains that ended here. */
  readonly deleted: number
  /** Moves that ended here. */
  readonly arrived: number
  /** Moves that began here. */
  readonly departed: number
}

/** The same while it is counted. */
export type MutableCounts = { -readonly [Count in keyof LocationCounts]: number }

/** A place where trains stand: a stop, or a whole station. */
export interface Location extends LocationCounts {
  readonly id: string
}

/** The store key of a location; a train of the same name has another. */
export function locationKey(id: string): string {
  return `LOC_${id}`
}

/** A location of which nothing is known yet. */
export function emptyLocation(id: string): Location {
  return { id, created: 0, deleted: 0, arrived: 0, departed: 0 }
}

/** The changes of trains that the counters of all locations together stand for. */
export function changesOf(locations: Iterable<LocationCounts>): {
  created: number
  moved: number
  deleted: number
} {
  const changes = { created: 0, moved: 0, deleted: 0 }
  for (const location of locations) {
    changes.created += location.created
    changes.moved += location.arrived
    changes.deleted += location.deleted
  }
  return changes
}
