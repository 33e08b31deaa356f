import { isDeepStrictEqual } from 'node:util'
import { emptyLocation, type LocationCounts } from '../domain/location.js'

export interface Difference {
  readonly location: string
  readonly expected: LocationCounts
  readonly found: LocationCounts
}

/**
 * Compares the stored locations with the serial result. A missing location is the same as one with zero counts.
 * @returns the differing locations, in the order of their IDs.
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

/** Returns only the counts of a location; zeros if it is undefined. */
export function countsOf(location: LocationCounts = emptyLocation('')): LocationCounts {
  const { created, deleted, arrived, departed } = location
  return { created, deleted, arrived, departed }
}

export function differenceText({ location, expected, found }: Difference): string {
  return `${location}: expected ${countsText(expected)}; found ${countsText(found)}`
}

function countsText({ created, arrived, departed, deleted }: LocationCounts): string {
  return `created ${created}, arrived ${arrived}, departed ${departed}, deleted ${deleted}`
}
