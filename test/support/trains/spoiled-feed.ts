import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const bundled = fileURLToPath(new URL('../../../apps/trains/data/caltrain-gtfs', import.meta.url))

/**
 * The bundled timetable with faults that can be mended: stray quotes in a column that is not read, a stop that stops.txt
 * lacks, and last stops without a time. The counts of one day are added up here from its lines alone.
 */
export function spoiledFeed() {
  const stops = rowsOf('stops.txt')
  const times = rowsOf('stop_times.txt')
  const absent = '70011'
  const counts: Record<string, Record<'created' | 'deleted' | 'arrived' | 'departed', number>> = {}
  const at = (stop: string) => (counts[stop] ??= { created: 0, deleted: 0, arrived: 0, departed: 0 })
  let withoutTime = 0
  for (const trip of new Set(times.slice(1).map(([id]) => id))) {
    const its = times.filter(([id]) => id === trip).sort((a, b) => Number(a[4]) - Number(b[4]))
    const places = its.map(([, , , stop]) => stop!)
    at(places[0]!).created++
    for (const stop of places.slice(0, -1)) at(stop).departed++
    for (const stop of places.slice(1)) at(stop).arrived++
    at(places.at(-1)!).deleted++
    if (its.length < 3) continue
    withoutTime++
    its.at(-1)!.splice(1, 2, '', '')
  }
  const described = stops
    .filter(([id]) => id !== absent)
    .map(([id, ...rest], index) => [id, index === 0 ? 'stop_desc' : '5" above the "rails', ...rest])
  const text = (rows: readonly (readonly (string | undefined)[])[]) =>
    Buffer.from(rows.map(row => row.join()).join('\n'))
  return {
    files: new Map([
      ['stops.txt', text(described)],
      ['trips.txt', readFileSync(`${bundled}/trips.txt`)],
      ['stop_times.txt', text(times)],
    ]),
    counts,
    faults: {
      quotes: described.length - 1,
      'unknown stop': times.filter(([, , , stop]) => stop === absent).length,
      'ends without a time': withoutTime,
    },
  }
}

/** No line of these files has a quote. */
function rowsOf(file: string): string[][] {
  return readFileSync(`${bundled}/${file}`, 'utf8')
    .trimEnd()
    .split('\n')
    .map(line => line.split(','))
}
