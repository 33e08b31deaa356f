import type { Trip } from './timetable.js'

/** Something that happens on every day of the timetable. */
export interface PlannedEvent {
  /** Seconds after the start of the service day. */
  readonly time: number
  readonly trip: string
  /** The event's place within its trip, counted from 0. */
  readonly step: number
  readonly type: 'create' | 'move' | 'delete'
  /** Where the train begins, where it goes, or where it ends. */
  readonly location: string
}

/**
 * All that happens on one day, in order of time. Events of one trip keep their order also at equal times, and trips
 * stand in order of their ids there, so that the plan depends on the timetable alone and not on the order of its lines.
 */
export function dayPlan(trips: readonly Trip[]): readonly PlannedEvent[] {
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
  return events.sort((a, b) => a.time - b.time || compareText(a.trip, b.trip) || a.step - b.step)
}

function compareText(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
