import { isDeepStrictEqual } from 'node:util'
import { emptyLocation, type LocationCounts } from '../domain/location.js'

/** A location that does not show what the serial result says. */
export interface Difference {
  readonly location: string
  readonly expected: LocationCounts
  readonly found: LocationCounts
}

/**
 * Compares what is stored with the serial result. A location that one of them lacks counts as zero there.
 * @returns the locations that differ, in order of their ids.
 */
export function compareLocations(
  expected: ReadonlyMap<string, LocationCounts>,
  found: ReadonlyMap<string, LocationCounts>,
): readonly Difference[] {
  const differences: Difference[] = []
  for (const location of [...new Set([...expected.keys(), ...found.keys()])].sort()) {
    const difference = {
      location,
      expected: countsOf(expected.get(location)),
      found: countsOf(found.get(location)),
    }
    if (!isDeepStrictEqual(difference.expected, difference.found)) differences.push(difference)
  }
  return differences
}

/** The counters alone; zeros for a location that is not known. */
export function countsOf(location: LocationCounts = emptyLocation('')): LocationCounts {
  const { created, deleted, arrived, departed } = location
  return { created, deleted, arrived, departed }
}
