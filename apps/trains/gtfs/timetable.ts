import { InputError, type OnRejection } from '../input/source.js'
import { name } from '../messages/field.js'
import type { FeedFiles } from './feed-files.js'
import { servicesOn } from './service-days.js'
import type { Stops } from './stops.js'
import { readTable, type Row } from './table.js'
import { secondsOf } from './time.js'
import { timedStops, type StopTime, type TimedStop } from './trip.js'

/** Room that is left in a train's name for the day and the number of a message. */
const LONGEST_TRIP_ID = 180

/** A trip and the stops it makes, in order, each with its times. */
export interface Trip {
  readonly id: string
  readonly stops: readonly TimedStop[]
}

/**
 * The trips of a feed, or those that run on `date`, in order of their ids.
 * @throws InputError when a file or a column is missing, or nothing runs on the date.
 */
export async function readTimetable(
  files: FeedFiles,
  stops: Stops,
  date: string | undefined,
  onRejection: OnRejection,
): Promise<readonly Trip[]> {
  const services = date === undefined ? undefined : await servicesOn(date, files, onRejection)
  const trips = await readTrips(files, services, onRejection)
  await addStopTimes(trips, files, stops, onRejection)
  const file = 'stop_times.txt'
  const timetable: Trip[] = []
  for (const [id, trip] of trips) {
    if (!trip.runs) continue
    const timed = timedStops(trip.stopTimes, (line, reason) => onRejection({ file, line, reason }))
    if (timed.length > 0) timetable.push({ id, stops: timed })
  }
  if (timetable.length === 0) throw new InputError(`${files.path} has no trip that runs`)
  return timetable.sort((a, b) => (a.id < b.id ? -1 : 1))
}

interface TripLines {
  readonly runs: boolean
  readonly stopTimes: StopTime[]
}

async function readTrips(
  files: FeedFiles,
  services: ReadonlySet<string> | undefined,
  onRejection: OnRejection,
): Promise<ReadonlyMap<string, TripLines>> {
  const file = 'trips.txt'
  const trips = new Map<string, TripLines>()
  for await (const row of readTable(files, file, ['trip_id', 'service_id'], onRejection)) {
    const id = row.value('trip_id')
    const reason = tripRefused(id, trips)
    if (reason !== undefined) onRejection({ file, line: row.line, reason })
    else trips.set(id, { runs: services?.has(row.value('service_id')) ?? true, stopTimes: [] })
  }
  return trips
}

function tripRefused(id: string, trips: ReadonlyMap<string, TripLines>): string | undefined {
  const checked = name(id)
  if ('refused' in checked) return `trip_id ${checked.refused}`
  if (id.length > LONGEST_TRIP_ID)
    return `trip_id must have at most ${LONGEST_TRIP_ID} characters, got ${id.length}`
  return trips.has(id) ? `trip_id "${id}" was on an earlier line already` : undefined
}

async function addStopTimes(
  trips: ReadonlyMap<string, TripLines>,
  files: FeedFiles,
  stops: Stops,
  onRejection: OnRejection,
): Promise<void> {
  const file = 'stop_times.txt'
  const columns = ['trip_id', 'arrival_time', 'departure_time', 'stop_id', 'stop_sequence']
  for await (const row of readTable(files, file, columns, onRejection)) {
    const trip = trips.get(row.value('trip_id'))
    if (trip?.runs === false) continue
    const stopTime = trip ? stopTimeOf(row, stops) : `trip_id "${row.value('trip_id')}" is not in trips.txt`
    if (typeof stopTime === 'string') onRejection({ file, line: row.line, reason: stopTime })
    else trip?.stopTimes.push(stopTime)
  }
}

/** The line's content, or the reason why it is refused. */
function stopTimeOf(row: Row, stops: Stops): StopTime | string {
  const location = stops.locationOf(row.value('stop_id'))
  if (location === undefined) return `stop_id "${row.value('stop_id')}" is not in stops.txt`
  const place = row.value('stop_sequence')
  if (!/^\d{1,15}$/.test(place)) return `stop_sequence must be a whole number, got "${place}"`
  const [arrives, departs] = [row.value('arrival_time'), row.value('departure_time')]
  // One time stands for both where the train does not wait.
  const arrival = secondsOf(arrives === '' ? departs : arrives)
  const departure = secondsOf(departs === '' ? arrives : departs)
  if (arrival === undefined && arrives !== '') return `arrival_time must be like 07:05:00, got "${arrives}"`
  if (departure === undefined && departs !== '')
    return `departure_time must be like 07:05:00, got "${departs}"`
  if (arrival !== undefined && departure !== undefined && departure < arrival) {
    return `departure_time ${departs} is before arrival_time ${arrives}`
  }
  return { line: row.line, sequence: Number(place), location, arrival, departure }
}
