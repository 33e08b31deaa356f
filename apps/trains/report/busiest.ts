import type { LocationCounts } from '../domain/location.js'

export interface BusyLocation extends LocationCounts {
  readonly id: string
  readonly total: number
}

/** Returns the busiest locations, at most `most`; equally busy ones in the order of their IDs. */
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
