import type { Fault } from '../input/findings.js'
import { InputError } from '../input/source.js'
import { kindOf } from '../messages/field.js'
import type { Feed } from './feed.js'
import { servicesOn } from './service-days.js'
import type { Stops } from './stops.js'
import { readTable, type Row } from './table.js'
import { timedStops, type StopTime, type TimedStop } from './trip.js'

export interface Trip {
  readonly id: string
  readonly stops: readonly TimedStop[]
}

/**
 * Returns the trips of a feed, or only those that run on `date`, in the order of their IDs.
 * @throws InputError if a file or a column is missing, or no trip is usable.
 */
export async function readTimetable(
  feed: Feed,
  stops: Stops,
  date: string | undefined,
): Promise<readonly Trip[]> {
  const services = date === undefined ? undefined : await servicesOn(date, feed)
  const trips = await readTrips(feed, services)
  await addStopTimes(trips, feed, stops)
  const { findings } = feed
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
  if (timetable.length === 0) throw new InputError(`${feed.path} has no usable trip`)
  return timetable.sort((a, b) => (a.id < b.id ? -1 : 1))
}

interface TripLines {
  readonly line: number
  readonly runs: boolean
  readonly stopTimes: StopTime[]
}

type Services = ReadonlyMap<string, boolean> | undefined

async function readTrips(feed: Feed, services: Services): Promise<ReadonlyMap<string, TripLines>> {
  const trips = new Map<string, TripLines>()
  for await (const row of readTable(feed, 'trips.txt', ['trip_id', 'service_id'])) {
    const id = row.value('trip_id')
    const fault = tripFault(row, trips, services)
    if (fault) row.reject(fault)
    else {
      const runs = services?.get(row.value('service_id')) ?? true
      trips.set(id, { line: row.line, runs, stopTimes: [] })
    }
  }
  return trips
}

function tripFault(row: Row, trips: ReadonlyMap<string, TripLines>, services: Services): Fault | undefined {
  const invalid = row.idFault('trip_id')
  if (invalid) return invalid
  const id = row.value('trip_id')
  if (trips.has(id)) {
    return { kind: 'duplicate trip', reason: `trip_id ${kindOf(id)} repeats an earlier line` }
  }
  const service = row.value('service_id')
  if (!services || services.has(service)) return undefined
  const reason = `service_id ${kindOf(service)} is neither in calendar.txt nor in calendar_dates.txt`
  return row.idFault('service_id') ?? { kind: 'unknown service', reason }
}

const UNKNOWN_TRIP: Fault = { kind: 'unknown trip', reason: 'it is not in trips.txt' }

async function addStopTimes(trips: ReadonlyMap<string, TripLines>, feed: Feed, stops: Stops): Promise<void> {
  const columns = ['trip_id', 'arrival_time', 'departure_time', 'stop_id', 'stop_sequence']
  for await (const row of readTable(feed, 'stop_times.txt', columns)) {
    const id = row.value('trip_id')
    const trip = trips.get(id)
    if (trip?.runs === false) continue
    const stopTime = trip ? stopTimeOf(row, stops) : UNKNOWN_TRIP
    if ('reason' in stopTime) {
      row.reject({ kind: stopTime.kind, reason: `trip ${kindOf(id)}: ${stopTime.reason}` })
      continue
    }
    trip?.stopTimes.push(stopTime)
    const stop = row.value('stop_id')
    if (!stops.has(stop)) {
      const reason = `trip ${kindOf(id)}: stop_id ${kindOf(stop)} is not in stops.txt; it is tracked by its ID`
      row.repair({ kind: 'unknown stop', reason })
    }
  }
}

function stopTimeOf(row: Row, stops: Stops): StopTime | Fault {
  const fault = row.idFault('stop_id')
  if (fault) return fault
  const sequence = row.value('stop_sequence')
  if (!/^\d{1,15}$/.test(sequence))
    return { kind: 'stop_sequence', reason: `stop_sequence must be an integer, got ${kindOf(sequence)}` }
  const [arrives, departs] = [row.value('arrival_time'), row.value('departure_time')]
  // If a line has only one time, it is both the arrival and the departure.
  const arrival = secondsOf(arrives === '' ? departs : arrives)
  const departure = secondsOf(departs === '' ? arrives : departs)
  if (arrival === undefined && arrives !== '') return timeFault('arrival_time', arrives)
  if (departure === undefined && departs !== '') return timeFault('departure_time', departs)
  if (arrival !== undefined && departure !== undefined && departure < arrival) {
    const reason = `departure_time ${departs} is before arrival_time ${arrives}`
    return { kind: 'departure before arrival', reason }
  }
  const location = stops.locationOf(row.value('stop_id'))
  return { line: row.line, sequence: Number(sequence), location, arrival, departure }
}

function timeFault(column: string, got: string): Fault {
  return { kind: column, reason: `${column} must be a time such as 07:05:00, got ${kindOf(got)}` }
}

const TIME = /^(\d{1,3}):([0-5]\d):([0-5]\d)$/

/**
 * Returns the seconds after the start of the service day for a time such as `7:05:00`, `07:05:00` or, past midnight,
 * `25:10:00`; undefined if it is invalid.
 */
function secondsOf(time: string): number | undefined {
  const [, hours, minutes, seconds] = TIME.exec(time) ?? []
  return seconds === undefined ? undefined : Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)
}
