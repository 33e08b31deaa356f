import type { OnRejection } from '../input/source.js'
import { name } from '../messages/field.js'
import type { FeedFiles } from './feed-files.js'
import { readTable } from './table.js'

/** What counts as one location: every stop of the feed, or all stops of a station together. */
export type LocationKind = 'stop' | 'station'

interface Stop {
  readonly name: string
  readonly parent: string
}

/** The stops of a feed and the locations that they belong to. */
export class Stops {
  readonly #stops: ReadonlyMap<string, Stop>
  readonly #kind: LocationKind

  constructor(stops: ReadonlyMap<string, Stop>, kind: LocationKind) {
    this.#stops = stops
    this.#kind = kind
  }

  /** The location of a stop; undefined when the feed has no such stop. */
  locationOf(stop: string): string | undefined {
    if (!this.#stops.has(stop)) return undefined
    if (this.#kind === 'stop') return stop
    // A boarding area belongs to a platform and that to a station. A circle of parents is no reason to hang.
    const seen = new Set([stop])
    for (let parent = this.#stops.get(stop)?.parent; parent; parent = this.#stops.get(parent)?.parent) {
      if (seen.has(parent)) break
      seen.add(parent)
    }
    return [...seen].at(-1)
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
  onRejection: OnRejection,
): Promise<Stops> {
  const file = 'stops.txt'
  const stops = new Map<string, Stop>()
  for await (const row of readTable(files, file, ['stop_id'], onRejection)) {
    const id = name(row.value('stop_id'))
    const parent = row.value('parent_station')
    const parentName = parent === '' ? { value: '' } : name(parent)
    let refused: string | undefined
    if ('refused' in id) refused = `stop_id ${id.refused}`
    else if ('refused' in parentName) refused = `parent_station ${parentName.refused}`
    else if (stops.has(id.value)) refused = `stop_id "${id.value}" was on an earlier line already`
    else stops.set(id.value, { name: row.value('stop_name'), parent: parentName.value })
    if (refused !== undefined) onRejection({ file, line: row.line, reason: refused })
  }
  return new Stops(stops, kind)
}
