import { basename } from 'node:path'
import type { Create } from '../messages/create.js'
import type { Delete } from '../messages/delete.js'
import type { Move } from '../messages/move.js'
import type { FindingsListener } from '../input/findings.js'
import type { MessageSource, TimedMessage } from '../input/source.js'
import { openFeed } from './feed.js'
import { readStops, type LocationKind } from './stops.js'
import { readTimetable, type Trip } from './timetable.js'

const SECONDS_A_DAY = 24 * 60 * 60

const BATCH = 256

/** The trips of a feed to run, and the number of days. */
export interface TimetableChoice {
  /** The folder or zip archive of the feed. */
  readonly path: string
  /** Only the trips on this date, such as `20260131`; undefined: every trip of the feed once. */
  readonly date: string | undefined
  readonly locations: LocationKind
  /** Number of days to run, each with new trains. */
  readonly days: number
}

/**
 * Reads a feed and converts it into messages. Each trip of each day is a train.
 * @throws InputError if the whole feed is unusable.
 */
export async function openTimetable(
  choice: TimetableChoice,
  findings: FindingsListener,
): Promise<MessageSource> {
  const feed = await openFeed(choice.path, findings)
  try {
    const stops = await readStops(feed, choice.locations)
    const timetable = await readTimetable(feed, stops, choice.date)
    const plan = dayPlan(timetable)
    return {
      name: basename(choice.path, '.zip'),
      description: describe(choice),
      total: plan.length * choice.days,
      days: choice.days,
      locationNames: stops.names(),
      geography: {
        patterns: patternsOf(timetable),
        stationOf: location => stops.stationOf(location),
        placeOf: location => stops.placeOf(location),
      },
      batches: () => batchesOf(plan, choice.days),
    }
  } finally {
    feed.close()
  }
}

function patternsOf(timetable: readonly Trip[]): readonly (readonly string[])[] {
  const patterns = new Map<string, readonly string[]>()
  for (const { stops } of timetable) {
    const locations = stops.map(({ location }) => location)
    patterns.set(locations.join('\n'), locations)
  }
  return [...patterns.values()]
}

function describe({ path, date, locations, days }: TimetableChoice): string {
  const what = date === undefined ? 'every trip' : `what runs on ${date}`
  return `timetable ${path}, ${what}, by ${locations}, days: ${days}`
}

/** An event that happens on every day of the timetable. */
interface PlannedEvent {
  /** Seconds after the start of the service day. */
  readonly time: number
  readonly trip: string
  /** The position of the event in its trip, counted from 0. */
  readonly step: number
  readonly type: 'create' | 'move' | 'delete'
  /** The location where the train is created or deleted, or to which it moves. */
  readonly location: string
}

/** Returns the events of one day in order of time. At equal times, keeps the order of the trips and of their steps. */
function dayPlan(trips: readonly Trip[]): readonly PlannedEvent[] {
  const events: PlannedEvent[] = []
  for (const { id: trip, stops } of trips) {
    for (const [step, { arrival, location }] of stops.entries()) {
      events.push({ time: arrival, trip, step, type: step === 0 ? 'create' : 'move', location })
    }
    const last = stops.at(-1)
    if (last) {
      const { departure: time, location } = last
      events.push({ time, trip, step: stops.length, type: 'delete', location })
    }
  }
  // The sort is stable, so events at equal times keep their order.
  return events.sort((a, b) => a.time - b.time)
}

/** Yields the messages of all days in order of time. Keeps the plan of only one day in memory. */
async function* batchesOf(
  plan: readonly PlannedEvent[],
  days: number,
): AsyncGenerator<readonly TimedMessage[]> {
  let batch: TimedMessage[] = []
  for (const message of messagesOf(plan, days)) {
    batch.push(message)
    if (batch.length === BATCH) {
      yield batch
      batch = []
    }
  }
  if (batch.length > 0) yield batch
}

interface CurrentDay {
  readonly day: number
  next: number
}

function* messagesOf(plan: readonly PlannedEvent[], days: number): Generator<TimedMessage> {
  // Trips past midnight overlap the next day, so several days can be current. The earliest event of these is next.
  const current: CurrentDay[] = []
  let started = 0
  const timeOf = ({ day, next }: CurrentDay) => plan[next]!.time + (day - 1) * SECONDS_A_DAY
  while (plan.length > 0) {
    if (current.length === 0) {
      if (started === days) return
      current.push({ day: ++started, next: 0 })
    }
    let earliest = current[0]!
    for (const day of current) if (timeOf(day) < timeOf(earliest)) earliest = day
    const following = { day: started + 1, next: 0 }
    if (started < days && timeOf(following) < timeOf(earliest)) {
      started++
      current.push(following)
      earliest = following
    }
    yield { message: messageOf(plan[earliest.next]!, earliest.day), time: timeOf(earliest) }
    earliest.next++
    if (earliest.next === plan.length) current.splice(current.indexOf(earliest), 1)
  }
}

function messageOf({ trip, step, type, location }: PlannedEvent, day: number): Create | Move | Delete {
  const train = `${trip}#${day}`
  const id = `${train}:${step}`
  if (type === 'create') return { id, type, train, location }
  if (type === 'move') return { id, type, train, to: location }
  return { id, type, train }
}
