import type { Create } from '../messages/create.js'
import type { Delete } from '../messages/delete.js'
import type { Move } from '../messages/move.js'
import type { FindingsListener } from '../input/findings.js'
import type { MessageSource, TimedMessage } from '../input/source.js'
import { dayPlan, type PlannedEvent } from './day-plan.js'
import { openFeed } from './feed-files.js'
import { readStops, type LocationKind } from './stops.js'
import { readTimetable, type Trip } from './timetable.js'

const SECONDS_A_DAY = 24 * 60 * 60

/** How many messages are handed on at a time. */
const BATCH = 256

/** Which part of a feed is played, and how often. */
export interface TimetableChoice {
  /** The folder or zip archive of the feed. */
  readonly path: string
  /** Only what runs on this date, like `20260131`; otherwise every trip of the feed once. */
  readonly date: string | undefined
  readonly locations: LocationKind
  /** How often it is repeated, each time with new trains. */
  readonly days: number
}

/**
 * Reads a feed and makes messages of it: every trip of every day is a train.
 * @throws InputError when the feed as a whole can't be used.
 */
export async function openTimetable(
  choice: TimetableChoice,
  findings: FindingsListener,
): Promise<MessageSource> {
  const files = await openFeed(choice.path)
  try {
    const stops = await readStops(files, choice.locations, findings)
    const timetable = await readTimetable(files, stops, choice.date, findings)
    const plan = dayPlan(timetable)
    return {
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
    files.close()
  }
}

/** The orders in which trips stop at locations, each once. */
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

/** The messages of all days in order of time. Only one day's plan is in memory, however many days there are. */
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

interface DayUnderWay {
  readonly day: number
  next: number
}

function* messagesOf(plan: readonly PlannedEvent[], days: number): Generator<TimedMessage> {
  // Trips past midnight run into the next day, so several days can be under way; the earliest event is next.
  const underWay: DayUnderWay[] = []
  let begun = 0
  const timeOf = ({ day, next }: DayUnderWay) => plan[next]!.time + (day - 1) * SECONDS_A_DAY
  while (plan.length > 0) {
    if (underWay.length === 0) {
      if (begun === days) return
      underWay.push({ day: ++begun, next: 0 })
    }
    let earliest = underWay[0]!
    for (const day of underWay) if (timeOf(day) < timeOf(earliest)) earliest = day
    const following = { day: begun + 1, next: 0 }
    if (begun < days && timeOf(following) < timeOf(earliest)) {
      begun++
      underWay.push(following)
      earliest = following
    }
    yield { message: messageOf(plan[earliest.next]!, earliest.day), time: timeOf(earliest) }
    earliest.next++
    if (earliest.next === plan.length) underWay.splice(underWay.indexOf(earliest), 1)
  }
}

function messageOf({ trip, step, type, location }: PlannedEvent, day: number): Create | Move | Delete {
  const train = `${trip}#${day}`
  const id = `${train}:${step}`
  if (type === 'create') return { id, type, train, location }
  if (type === 'move') return { id, type, train, to: location }
  return { id, type, train }
}
