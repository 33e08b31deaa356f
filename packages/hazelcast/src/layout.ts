import type { IMap } from 'hazelcast-client'
import { UnavailableError } from 'signalbox'
import type { Clock } from 'signalbox/engine'
import { answered } from './call.js'
import type { HazelcastPlace } from './hazelcast-url.js'

/** The key of the entry with the version of the layout, in the map of the table. */
const KEY = 'table'
const LAYOUT = 'signalbox 2'
/** The first layout kept all locks in that entry. */
const FIRST_LAYOUT = '["'

/**
 * Writes the version of the layout to a new place.
 * @throws UnavailableError if the place has another layout; errors of the client
 */
export async function checkLayout(
  table: IMap<string, string>,
  { name, map }: HazelcastPlace,
  clock: Clock,
): Promise<void> {
  const found = await answered(table.putIfAbsent(KEY, LAYOUT), clock)
  if (found === null || found === LAYOUT) return
  throw new UnavailableError(
    found.startsWith(FIRST_LAYOUT)
      ? `the map ${map}.table of ${name} has the layout of an earlier Signalbox: close all boxes of that version, ` +
          `then delete its entry "${KEY}"; values stay`
      : `the entry "${KEY}" of the map ${map}.table of ${name} was written by another program, or has an unknown layout`,
    { engine: name },
  )
}
