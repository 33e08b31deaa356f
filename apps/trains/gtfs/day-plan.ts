import type { Trip } from './timetable.js'

/** An event that happens on every day of the timetable. */
export interface PlannedEvent {
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
  // The sort is stable, so events at equal times keep their order.
  return events.sort((a, b) => a.time - b.time)
}
