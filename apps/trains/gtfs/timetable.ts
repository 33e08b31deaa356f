import type { Fault, FindingsListener } from '../input/findings.js'
import { InputError } from '../input/source.js'
import { kindOf, name } from '../messages/field.js'
import type { FeedFiles } from './feed-files.js'
import { serviceRefused, servicesOn } from './service-days.js'
import type { Stops } from './stops.js'
import { readTable, type Row } from './table.js'
import { secondsOf } from './time.js'
import { timedStops, type StopTime, type TimedStop } from './trip.js'

/** Maximum length of a trip's ID, which leaves room in a message's ID for the day and the step. */
const MAX_TRIP_ID = 180

/** A trip with its stops in order, each with its times. */
export interface Trip {
  readonly id: string
  readonly stops: readonly TimedStop[]
}

/**
 * Reads the trips of a feed, or those that run on `date`, in the order of their IDs.
 * @throws InputError if a file or a column is missing, or nothing runs.
 */
export async function readTimetable(
  files: FeedFiles,
  stops: Stops,
  date: string | undefined,
  findings: FindingsListener,
): Promise<readonly Trip[]> {
  const services = date === undefined ? undefined : await servicesOn(date, files, findings)
  const trips = await readTrips(files, services, findings)
  await addStopTimes(trips, files, stops, findings)
  const file = 'stop_times.txt'
  const timetable: Trip[] = []
  for (const [id, trip] of trips) {
    if (!trip.runs) continue
    const name = `trip ${kindOf(id)}`
    const timed = timedStops(trip.stopTimes, {
      rejected: (line, kind, reason) => findings.rejected({ file, line, kind, reason: `${name} ${reason}` }),
      repaired: (line, kind, reason) => findings.repaired({ file, line, kind, reason: `${name} ${reason}` }),
    })
    if (trip.stopTimes.length === 0) {
      const reason = `${name} has no usable line in stop_times.txt`
      findings.rejected({ file: 'trips.txt', line: trip.line, kind: 'no stops', reason })
    }
    if (timed.length > 0) timetable.push({ id, stops: timed })
  }
  if (timetable.length === 0) throw new InputError(`${files.path} has no usable trip`)
  return timetable.sort((a, b) => (a.id < b.id ? -1 : 1))
}

interface TripLines {
  readonly line: number
  readonly runs: boolean
  readonly stopTimes: StopTime[]
}

async function readTrips(
  files: FeedFiles,
  services: ReadonlyMap<string, boolean> | undefined,
  findings: FindingsListener,
): Promise<ReadonlyMap<string, TripLines>> {
  const file = 'trips.txt'
  const trips = new Map<string, TripLines>()
  for await (const row of readTable(files, file, ['trip_id', 'service_id'], findings)) {
    const id = row.value('trip_id')
    const { line } = row
    const refused = tripRefused(id, trips) ?? (services && unknownService(row, services))
    if (refused) findings.rejected({ file, line, ...refused })
    else trips.set(id, { line, runs: services?.get(row.value('service_id')) ?? true, stopTimes: [] })
  }
  return trips
}

function tripRefused(id: string, trips: ReadonlyMap<string, TripLines>): Fault | undefined {
  const checked = name(id)
  if ('refused' in checked) return { kind: 'trip_id', reason: `trip_id ${checked.refused}` }
  if (id.length > MAX_TRIP_ID) {
    const reason = `trip_id must have at most ${MAX_TRIP_ID} characters, got ${id.length}`
    return { kind: 'trip_id', reason }
  }
  if (!trips.has(id)) return undefined
  return { kind: 'duplicate trip', reason: `trip_id ${kindOf(id)} repeats an earlier line` }
}

function unknownService(row: Row, services: ReadonlyMap<string, boolean>): Fault | undefined {
  const service = row.value('service_id')
  if (services.has(service)) return undefined
  const reason = `service_id ${kindOf(service)} is neither in calendar.txt nor in calendar_dates.txt`
  return serviceRefused(row) ?? { kind: 'unknown service', reason }
}

const UNKNOWN_TRIP: Fault = { kind: 'unknown trip', reason: 'it is not in trips.txt' }

async function addStopTimes(
  trips: ReadonlyMap<string, TripLines>,
  files: FeedFiles,
  stops: Stops,
  findings: FindingsListener,
): Promise<void> {
  const file = 'stop_times.txt'
  const columns = ['trip_id', 'arrival_time', 'departure_time', 'stop_id', 'stop_sequence']
  for await (const row of readTable(files, file, columns, findings)) {
    const trip = trips.get(row.value('trip_id'))
    if (trip?.runs === false) continue
    const { line } = row
    const stopTime = trip ? stopTimeOf(row, stops) : UNKNOWN_TRIP
    if ('reason' in stopTime) {
      const reason = `trip ${kindOf(row.value('trip_id'))}: ${stopTime.reason}`
      findings.rejected({ file, line, kind: stopTime.kind, reason })
      continue
    }
    trip?.stopTimes.push(stopTime)
    const stop = row.value('stop_id')
    if (!stops.has(stop)) {
      const named = `trip ${kindOf(row.value('trip_id'))}: stop_id ${kindOf(stop)}`
      const reason = `${named} is not in stops.txt; it is tracked by its ID`
      findings.repaired({ file, line, kind: 'unknown stop', reason })
    }
  }
}

/** Returns the content of a line, or why it is refused. */
function stopTimeOf(row: Row, stops: Stops): StopTime | Fault {
  const stop = row.value('stop_id')
  const checked = name(stop)
  if ('refused' in checked) return { kind: 'stop_id', reason: `stop_id ${checked.refused}` }
  const place = row.value('stop_sequence')
  if (!/^\d{1,15}$/.test(place))
    return { kind: 'stop_sequence', reason: `stop_sequence must be an integer, got ${kindOf(place)}` }
  const [arrives, departs] = [row.value('arrival_time'), row.value('departure_time')]
  // One time is enough if the train does not wait.
  const arrival = secondsOf(arrives === '' ? departs : arrives)
  const departure = secondsOf(departs === '' ? arrives : departs)
  if (arrival === undefined && arrives !== '') return noTime('arrival_time', arrives)
  if (departure === undefined && departs !== '') return noTime('departure_time', departs)
  if (arrival !== undefined && departure !== undefined && departure < arrival) {
    const reason = `departure_time ${departs} is before arrival_time ${arrives}`
    return { kind: 'departure before arrival', reason }
  }
  return { line: row.line, sequence: Number(place), location: stops.locationOf(stop), arrival, departure }
}

function noTime(column: string, got: string): Fault {
  return { kind: column, reason: `${column} must be a time such as 07:05:00, got ${kindOf(got)}` }
}
