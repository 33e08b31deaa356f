import type { FindingsListener } from '../input/findings.js'
import type { Place } from '../input/source.js'
import { kindOf, name } from '../messages/field.js'
import type { FeedFiles } from './feed-files.js'
import { readTable, type Row } from './table.js'

const FILE = 'stops.txt'

/** A boarding area belongs to a platform, and that to a station. */
const LEVELS = 2

/** What counts as one location: every stop of the feed, or all stops of a station together. */
export type LocationKind = 'stop' | 'station'

interface Stop {
  readonly line: number
  readonly name: string
  readonly place: Place | undefined
  /** As the line says. */
  readonly station: string
  /** The stop or station that it belongs to; undefined where it is a location of its own. */
  parent: string | undefined
}

/** The stops of a feed and the locations that they belong to. */
export class Stops {
  readonly #stops: ReadonlyMap<string, Stop>

  constructor(stops: ReadonlyMap<string, Stop>) {
    this.#stops = stops
  }

  has(stop: string): boolean {
    return this.#stops.has(stop)
  }

  /** The location of a stop: itself where stops.txt does not have it. */
  locationOf(stop: string): string {
    let location = stop
    // A boarding area belongs to a platform and that to a station.
    for (let parent = this.#stops.get(stop)?.parent; parent !== undefined;) {
      location = parent
      parent = this.#stops.get(parent)?.parent
    }
    return location
  }

  /** The station of a location of any type: itself where it has none. */
  stationOf(location: string): string {
    let station = location
    for (let level = 0; level < LEVELS; level++) {
      const parent = this.#stops.get(station)?.station ?? ''
      if (!this.#stops.has(parent)) break
      station = parent
    }
    return station
  }

  /** Where a stop or station is; undefined where stops.txt does not say so. */
  placeOf(stop: string): Place | undefined {
    return this.#stops.get(stop)?.place
  }

  /** The names of all stops and stations, by id. */
  names(): ReadonlyMap<string, string> {
    return new Map([...this.#stops].map(([id, stop]) => [id, stop.name]))
  }
}

/** @throws InputError when stops.txt or its column stop_id is missing. */
export async function readStops(
  files: FeedFiles,
  kind: LocationKind,
  findings: FindingsListener,
): Promise<Stops> {
  const stops = new Map<string, Stop>()
  for await (const row of readTable(files, FILE, ['stop_id'], findings)) {
    const { line } = row
    const id = row.value('stop_id')
    const checked = name(id)
    if ('refused' in checked) {
      findings.rejected({ file: FILE, line, kind: 'stop_id', reason: `stop_id ${checked.refused}` })
      continue
    }
    if (stops.has(id)) {
      const reason = `stop_id ${kindOf(id)} was on an earlier line already, which counts`
      findings.repaired({ file: FILE, line, kind: 'repeated stop', reason })
      continue
    }
    const station = row.value('parent_station')
    const parent = kind === 'station' && station !== '' ? station : undefined
    stops.set(id, { line, name: row.value('stop_name'), place: placeOf(row), station, parent })
  }
  dropWrongParents(stops, findings)
  return new Stops(stops)
}

function placeOf(row: Row): Place | undefined {
  const [latitude, longitude] = [degrees(row.value('stop_lat'), 90), degrees(row.value('stop_lon'), 180)]
  // Where there is no place, many feeds have both at zero.
  if (latitude === undefined || longitude === undefined || (latitude === 0 && longitude === 0))
    return undefined
  return { latitude, longitude }
}

function degrees(text: string, most: number): number | undefined {
  const number = text === '' ? NaN : Number(text)
  return Math.abs(number) <= most ? number : undefined
}

/** A parent that stops.txt lacks, or that leads back to the stop, is no reason to make up a location or to hang. */
function dropWrongParents(stops: ReadonlyMap<string, Stop>, findings: FindingsListener): void {
  const wrong = [...stops].flatMap(([id, stop]) => {
    const fault = parentFault(id, stops)
    return fault === undefined ? [] : [{ id, stop, fault }]
  })
  for (const { id, stop, fault } of wrong) {
    const parent = kindOf(stop.parent)
    const reason = `parent_station ${parent} ${fault}; stop ${kindOf(id)} is a location of its own`
    findings.repaired({ file: FILE, line: stop.line, kind: 'parent_station', reason })
    stop.parent = undefined
  }
}

function parentFault(id: string, stops: ReadonlyMap<string, Stop>): string | undefined {
  const own = stops.get(id)!.parent
  if (own === undefined) return undefined
  if (!stops.has(own)) return 'is not in stops.txt'
  const seen = new Set<string>()
  for (let parent: string | undefined = own; parent !== undefined; parent = stops.get(parent)?.parent) {
    if (parent === id) return 'leads back to the stop'
    // A cycle among the others is reported for them.
    if (seen.has(parent)) return undefined
    seen.add(parent)
  }
  return undefined
}
