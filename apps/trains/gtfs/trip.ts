/** A line of stop_times.txt: where and when a trip stops, and its position in the trip. */
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

/** Receives the dropped lines and the estimated times of a trip. Each reason continues the trip's name. */
export interface TripListener {
  readonly rejected: (line: number, kind: string, reason: string) => void
  readonly repaired: (line: number, kind: string, reason: string) => void
}

/**
 * Returns the stops of a trip in the order of their sequence numbers, each with its times. Stops without times are
 * spread evenly between the stops with times around them. At the ends of a trip, times are estimated from the speed
 * between the two nearest stops with times. A line is rejected if it repeats a sequence number, goes back in time, or
 * has no time and none can be estimated.
 */
export function timedStops(lines: readonly StopTime[], listener: TripListener): readonly TimedStop[] {
  const possible = inForwardOrder(inSequence(lines, listener), listener)
  const timed = possible.filter(isTimepoint)
  if (timed.length > 1) return interpolated(withEnds(possible, listener))
  for (const stop of possible) {
    if (timed.length === 0) listener.rejected(stop.line, 'no time', 'has no time at any stop')
    else if (!isTimepoint(stop)) listener.rejected(stop.line, 'one time', 'has a time at one stop only')
  }
  return timed
}

/** Adds times to the first and last stops. At least two stops must have times. */
function withEnds(stops: readonly StopTime[], { repaired }: TripListener): readonly StopTime[] {
  const timepoints = [...stops.keys()].filter(index => isTimepoint(stops[index]!))
  const [first, second] = [timepoints[0]!, timepoints[1]!]
  const [last, lastButOne] = [timepoints.at(-1)!, timepoints.at(-2)!]
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

/** Returns the average time per stop between two stops with times, in seconds. */
function pace(stops: readonly StopTime[], from: number, to: number): number {
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
