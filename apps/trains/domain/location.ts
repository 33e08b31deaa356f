/** Numbers of events at a location. */
export interface LocationCounts {
  /** Trains that began here. */
  readonly created: number
  /** Trains that ended here. */
  readonly deleted: number
  /** Moves to here. */
  readonly arrived: number
  /** Moves from here. */
  readonly departed: number
}

export type MutableCounts = { -readonly [Count in keyof LocationCounts]: number }

/** A place where trains stop: a stop or a station. */
export interface Location extends LocationCounts {
  readonly id: string
}

/** Returns the store key of a location, which differs from that of a train with the same name. */
export function locationKey(id: string): string {
  return `LOC_${id}`
}

export function emptyLocation(id: string): Location {
  return { id, created: 0, deleted: 0, arrived: 0, departed: 0 }
}

/** Returns the number of changes of each kind at all locations. A move counts once, at its destination. */
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
