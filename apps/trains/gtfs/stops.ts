import type { FindingsListener } from '../input/findings.js'
import { name } from '../messages/field.js'
import type { FeedFiles } from './feed-files.js'
import { readTable, type Row } from './table.js'

/** What counts as one location: every stop of the feed, or all stops of a station together. */
export type LocationKind = 'stop' | 'station'

interface Stop {
  readonly name: string
  /** Empty where it has none, or where stops are the locations. */
  readonly parent: string
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
    // A boarding area belongs to a platform and that to a station. A circle of parents is no reason to hang.
    const seen = new Set([stop])
    for (let parent = this.#stops.get(stop)?.parent; parent; parent = this.#stops.get(parent)?.parent) {
      if (seen.has(parent)) break
      seen.add(parent)
    }
    return [...seen].at(-1)!
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
  const file = 'stops.txt'
  const stops = new Map<string, Stop>()
  for await (const row of readTable(files, file, ['stop_id'], findings)) {
    const { line } = row
    const id = row.value('stop_id')
    const checked = name(id)
    if ('refused' in checked) {
      findings.rejected({ file, line, kind: 'stop_id', reason: `stop_id ${checked.refused}` })
      continue
    }
    if (stops.has(id)) {
      const reason = `stop_id "${id}" was on an earlier line already, which counts`
      findings.mended({ file, line, kind: 'repeated stop', reason })
      continue
    }
    stops.set(id, {
      name: row.value('stop_name'),
      parent: kind === 'stop' ? '' : parentOf(row, file, findings),
    })
  }
  return new Stops(stops)
}

function parentOf(row: Row, file: string, findings: FindingsListener): string {
  const parent = row.value('parent_station')
  const checked = parent === '' ? undefined : name(parent)
  if (!checked || !('refused' in checked)) return parent
  const reason = `parent_station ${checked.refused}; the stop is a location of its own`
  findings.mended({ file, line: row.line, kind: 'parent_station', reason })
  return ''
}
