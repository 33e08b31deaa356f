import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const bundled = fileURLToPath(new URL('../../../apps/trains/data/caltrain-gtfs', import.meta.url))

/** Numbers of events at a place in a day. */
type Counts = Record<'created' | 'deleted' | 'arrived' | 'departed', number>

/** Columns of stop_times.txt. */
const [TRIP, ARRIVAL, DEPARTURE, STOP, SEQUENCE] = [0, 1, 2, 3, 4] as const

/** The stop that stops.txt lacks. */
const ABSENT = '70011'

/** Ways to spoil the third line of a trip so that it is rejected, by the name of the fault in the report. */
const LOST_LINES: Readonly<Record<string, (row: string[]) => void>> = {
  columns: row => row.push('more'),
  'unknown trip': row => (row[TRIP] = 'none'),
  stop_id: row => (row[STOP] = ''),
  stop_sequence: row => (row[SEQUENCE] = 'third'),
  arrival_time: row => (row[ARRIVAL] = 'at noon'),
  departure_time: row => (row[DEPARTURE] = '7:60:00'),
  'departure before arrival': row => (row[DEPARTURE] = '00:00:00'),
  'duplicate stop_sequence': row => (row[SEQUENCE] = '1'),
  backwards: row => row.splice(ARRIVAL, 2, '00:00:00', '00:00:00'),
}

/**
 * Returns the bundled timetable with faults of every kind: faults that are repaired, and faults that lose a line.
 * Counts the events of one day from its lines alone.
 */
export function spoiledFeed() {
  const stops = rowsOf('stops.txt')
  const trips = rowsOf('trips.txt')
  const times = rowsOf('stop_times.txt')
  const counts: Record<string, Counts> = {}
  const repaired = { quotes: 0, 'duplicate stop': 0, 'unknown stop': 0, 'ends without a time': 0 }
  const rejected: Record<string, number> = {}
  const lose = (kind: string, lines = 1) => (rejected[kind] = (rejected[kind] ?? 0) + lines)

  const ways = Object.entries(LOST_LINES)
  let long = 0
  for (const trip of new Set(times.slice(1).map(row => row[TRIP]!))) {
    const its = times.filter(row => row[TRIP] === trip).sort((a, b) => +a[SEQUENCE]! - +b[SEQUENCE]!)
    if (its.length < 6) {
      repaired['unknown stop'] += absentAmong(its)
      count(counts, its)
      continue
    }
    const [kind, spoil] = ways[long++] ?? []
    if (spoil) {
      const [lost] = its.splice(2, 1)
      spoil(lost!)
      lose(kind!)
    }
    repaired['unknown stop'] += absentAmong(its)
    if (long === ways.length + 1) {
      for (const row of its) row.splice(ARRIVAL, 2, '', '')
      lose('no time', its.length)
    } else if (long === ways.length + 2) {
      for (const row of its.slice(1)) row.splice(ARRIVAL, 2, '', '')
      repaired['ends without a time'] += its.length - 1
      count(counts, its)
    } else {
      its.at(-1)!.splice(ARRIVAL, 2, '', '')
      repaired['ends without a time']++
      count(counts, its)
    }
  }

  // Lines that are repeated, and a trip without a line in stop_times.txt.
  trips.push(trips[1]!, trips[1]!.with(2, 'nowhere'))
  lose('duplicate trip')
  lose('no stops')
  const described = [...stops.filter(([id]) => id !== ABSENT), stops.at(-1)!].map(([id, ...rest], index) => [
    id,
    index === 0 ? 'stop_desc' : '5" above the "rails',
    ...rest,
  ])
  repaired.quotes = described.length - 1
  repaired['duplicate stop'] = 1
  return {
    files: new Map(
      Object.entries({ 'stops.txt': described, 'trips.txt': trips, 'stop_times.txt': times }).map(
        ([file, rows]) => [file, Buffer.from(rows.map(row => row.join()).join('\n'))],
      ),
    ),
    counts,
    repaired,
    rejected,
  }
}

function absentAmong(rows: readonly string[][]): number {
  return rows.filter(row => row[STOP] === ABSENT).length
}

/** Counts the events of a train that makes these stops. */
function count(counts: Record<string, Counts>, rows: readonly string[][]): void {
  const at = (row: string[]) => (counts[row[STOP]!] ??= { created: 0, deleted: 0, arrived: 0, departed: 0 })
  at(rows[0]!).created++
  for (const row of rows.slice(0, -1)) at(row).departed++
  for (const row of rows.slice(1)) at(row).arrived++
  at(rows.at(-1)!).deleted++
}

/** Returns the fields of a file whose lines have no quotes. */
function rowsOf(file: string): string[][] {
  return readFileSync(`${bundled}/${file}`, 'utf8')
    .trimEnd()
    .split('\n')
    .map(line => line.split(','))
}
