import type { Trip } from './timetable.js'

/** An event of every day of the timetable. */
export interface PlannedEvent {
  /** Seconds after the start of the service day. */
  readonly time: number
  readonly trip: string
  /** The position of the event in its trip, counted from 0. */
  readonly step: number
  readonly type: 'create' | 'move' | 'delete'
  /** Where the train is created, moves to, or is deleted. */
  readonly location: string
}

/** The events of one day in order of time; at equal times, in the order of the trips, and of the steps of each. */
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
  // Stable, so equal times keep their order.
  return events.sort((a, b) => a.time - b.time)
}
