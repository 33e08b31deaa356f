import type { Place } from '../input/source.js'
import { kindOf } from '../messages/field.js'
import type { Feed } from './feed.js'
import { readTable, type Row } from './table.js'

/** Maximum number of levels up to a station: a boarding area belongs to a platform, and a platform to a station. */
const LEVELS = 2

/** The kind of all locations: stops of the feed, or stations with all their stops. */
export type LocationKind = 'stop' | 'station'

interface Stop {
  readonly name: string
  readonly place: Place | undefined
  /** The value of `parent_station`; empty if there is none. */
  readonly parent: string
}

export class Stops {
  readonly #stops: ReadonlyMap<string, Stop>
  readonly #kind: LocationKind

  constructor(stops: ReadonlyMap<string, Stop>, kind: LocationKind) {
    this.#stops = stops
    this.#kind = kind
  }

  has(stop: string): boolean {
    return this.#stops.has(stop)
  }

  /** Returns the location of a stop; the stop itself if it is not in stops.txt. */
  locationOf(stop: string): string {
    return this.#kind === 'station' ? this.stationOf(stop) : stop
  }

  /** Returns the station of a location; the location itself if stops.txt has none. */
  stationOf(location: string): string {
    let station = location
    for (let level = 0; level < LEVELS; level++) {
      const parent = this.#stops.get(station)?.parent ?? ''
      if (!this.#stops.has(parent)) break
      station = parent
    }
    return station
  }

  placeOf(stop: string): Place | undefined {
    return this.#stops.get(stop)?.place
  }

  names(): ReadonlyMap<string, string> {
    return new Map([...this.#stops].map(([id, stop]) => [id, stop.name]))
  }
}

/** Reads stops.txt. @throws InputError if the file or its column stop_id is missing. */
export async function readStops(feed: Feed, kind: LocationKind): Promise<Stops> {
  const stops = new Map<string, Stop>()
  for await (const row of readTable(feed, 'stops.txt', ['stop_id'])) {
    const id = row.value('stop_id')
    const fault = row.idFault('stop_id')
    if (fault) {
      row.reject(fault)
      continue
    }
    if (stops.has(id)) {
      const reason = `stop_id ${kindOf(id)} repeats an earlier line; the earlier one is used`
      row.repair({ kind: 'duplicate stop', reason })
      continue
    }
    stops.set(id, { name: row.value('stop_name'), place: placeOf(row), parent: row.value('parent_station') })
  }
  return new Stops(stops, kind)
}

function placeOf(row: Row): Place | undefined {
  const [latitude, longitude] = [degrees(row.value('stop_lat'), 90), degrees(row.value('stop_lon'), 180)]
  // Many feeds have zeros for an unknown place.
  if (latitude === undefined || longitude === undefined || (latitude === 0 && longitude === 0))
    return undefined
  return { latitude, longitude }
}

function degrees(text: string, most: number): number | undefined {
  const number = text === '' ? NaN : Number(text)
  return Math.abs(number) <= most ? number : undefined
}
