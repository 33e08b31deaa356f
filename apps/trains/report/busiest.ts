import type { LocationCounts } from '../domain/location.js'

/** A location with all that happened there. */
export interface BusyLocation extends LocationCounts {
  readonly id: string
  readonly total: number
}

/** The locations where most happened, `most` at most; equal ones in order of their ids. */
export function busiest(
  locations: ReadonlyMap<string, LocationCounts>,
  most: number,
): readonly BusyLocation[] {
  return Array.from(locations, ([id, counts]) => ({
    id,
    ...counts,
    total: counts.created + counts.deleted + counts.arrived + counts.departed,
  }))
    .sort((a, b) => b.total - a.total || (a.id < b.id ? -1 : 1))
    .slice(0, most)
}
