/** A line of stop_times.txt: a stop of a trip, its times, and its position in the trip. */
export interface StopTime {
  readonly line: number
  readonly sequence: number
  readonly location: string
  /** Seconds after the start of the service day; undefined for a stop without times. */
  readonly arrival: number | undefined
  readonly departure: number | undefined
}

/** A stop of a trip whose times are given or estimated. */
export interface TimedStop {
  readonly location: string
  readonly arrival: number
  readonly departure: number
}

interface Timepoint extends StopTime {
  readonly arrival: number
  readonly departure: number
}

/** Receives the dropped lines and the estimated times of a trip. Each reason is a phrase to follow the trip's name. */
export interface TripListener {
  readonly rejected: (line: number, kind: string, reason: string) => void
  readonly repaired: (line: number, kind: string, reason: string) => void
}

/** Time from stop to stop of a trip that has only one time, in seconds. */
const USUAL_PACE = 60

/**
 * Returns the stops of a trip in the order of their sequence numbers, each with its times. Spreads
 * missing times between two stops with times evenly. Estimates missing times at the ends of a trip from the speed
 * between the two nearest stops with times; if only one stop has a time, at one minute for each stop. Rejects a line that repeats a sequence number, goes back in time, or is on a trip
 * without any time.
 */
export function timedStops(lines: readonly StopTime[], listener: TripListener): readonly TimedStop[] {
  const possible = inForwardOrder(inSequence(lines, listener), listener)
  const timed = possible.filter(isTimepoint)
  if (timed.length > 0) return interpolated(withEnds(possible, listener))
  for (const stop of possible) listener.rejected(stop.line, 'no time', 'has no time at any stop')
  return []
}

/** Adds times to the first and last stops. At least one stop must have a time. */
function withEnds(stops: readonly StopTime[], { repaired }: TripListener): readonly StopTime[] {
  const timepoints = [...stops.keys()].filter(index => isTimepoint(stops[index]!))
  const [first, last] = [timepoints[0]!, timepoints.at(-1)!]
  const [second, lastButOne] = [timepoints[1], timepoints.at(-2)]
  return stops.map((stop, index) => {
    let time: number
    if (index < first)
      time = Math.max(0, stops[first]!.arrival! - (first - index) * pace(stops, first, second))
    else if (index > last) time = stops[last]!.departure! + (index - last) * pace(stops, lastButOne, last)
    else return stop
    const end = index < first ? 'begins' : 'ends'
    repaired(stop.line, `${end} without a time`, `${end} without a time; ${clockTime(time)} is estimated`)
    return { ...stop, arrival: time, departure: time }
  })
}

/** Returns the average time per stop between two stops with times, in seconds; the usual one if only one has a time. */
function pace(stops: readonly StopTime[], from: number | undefined, to: number | undefined): number {
  if (from === undefined || to === undefined) return USUAL_PACE
  return (stops[to]!.arrival! - stops[from]!.departure!) / (to - from)
}

function inSequence(lines: readonly StopTime[], { rejected }: TripListener): readonly StopTime[] {
  const sorted = lines.toSorted((a, b) => a.sequence - b.sequence || a.line - b.line)
  return sorted.filter((stop, index) => {
    const same = index > 0 && sorted[index - 1]!.sequence === stop.sequence
    const reason = `repeats stop_sequence ${stop.sequence} of an earlier line`
    if (same) rejected(stop.line, 'duplicate stop_sequence', reason)
    return !same
  })
}

function inForwardOrder(stops: readonly StopTime[], { rejected }: TripListener): readonly StopTime[] {
  let latest = 0
  return stops.filter(stop => {
    if (!isTimepoint(stop)) return true
    if (stop.arrival < latest) {
      const [arrival, earlier] = [clockTime(stop.arrival), clockTime(latest)]
      const reason = `arrives at ${arrival}, but departs from an earlier stop at ${earlier}`
      rejected(stop.line, 'backwards', reason)
      return false
    }
    latest = stop.departure
    return true
  })
}

function interpolated(stops: readonly StopTime[]): readonly TimedStop[] {
  const timed: TimedStop[] = []
  let before = 0
  for (const [index, stop] of stops.entries()) {
    if (!isTimepoint(stop)) continue
    const from = timed[before]?.departure ?? 0
    for (let between = before + 1; between < index; between++) {
      const time = from + ((stop.arrival - from) * (between - before)) / (index - before)
      timed.push({ location: stops[between]!.location, arrival: time, departure: time })
    }
    timed.push({ location: stop.location, arrival: stop.arrival, departure: stop.departure })
    before = index
  }
  return timed
}

function isTimepoint(stop: StopTime): stop is Timepoint {
  return stop.arrival !== undefined && stop.departure !== undefined
}

function clockTime(seconds: number): string {
  const parts = [seconds / 3600, (seconds / 60) % 60, seconds % 60]
  return parts.map(part => String(Math.floor(part)).padStart(2, '0')).join(':')
}
