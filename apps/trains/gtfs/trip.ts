/** A line of stop_times.txt: where a trip stops, in which place, and when if the timetable says so. */
export interface StopTime {
  readonly line: number
  readonly sequence: number
  readonly location: string
  /** Seconds after the start of the service day; undefined for a stop between two timepoints. */
  readonly arrival: number | undefined
  readonly departure: number | undefined
}

/** A stop of a trip with times for certain: given, or interpolated. */
export interface TimedStop {
  readonly location: string
  readonly arrival: number
  readonly departure: number
}

interface Timepoint extends StopTime {
  readonly arrival: number
  readonly departure: number
}

/** Receives which lines of a trip are left out, and which times are estimated. A reason follows the trip's name. */
export interface TripListener {
  readonly rejected: (line: number, kind: string, reason: string) => void
  readonly repaired: (line: number, kind: string, reason: string) => void
}

/**
 * The stops of one trip in the order of their sequence numbers, each with its times. Stops without times are spread
 * evenly between the timepoints around them. Where the first or last stops have none, the trip goes as fast there as
 * between the two timepoints next to them. A line that can't be true is rejected and left out: a place in the sequence
 * that is taken, a time before that of an earlier stop, or no time where none can be estimated.
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

/** With times at the first and the last stop. Two stops at least have a time. */
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

/** How long a trip takes for one stop between two timepoints, in seconds. */
function pace(stops: readonly StopTime[], from: number, to: number): number {
  return (stops[to]!.arrival! - stops[from]!.departure!) / (to - from)
}

function inSequence(lines: readonly StopTime[], { rejected }: TripListener): readonly StopTime[] {
  const sorted = lines.toSorted((a, b) => a.sequence - b.sequence || a.line - b.line)
  return sorted.filter((stop, index) => {
    const same = index > 0 && sorted[index - 1]!.sequence === stop.sequence
    const reason = `has stop_sequence ${stop.sequence} on an earlier line already`
    if (same) rejected(stop.line, 'repeated place', reason)
    return !same
  })
}

function inForwardOrder(stops: readonly StopTime[], { rejected }: TripListener): readonly StopTime[] {
  let latest = 0
  return stops.filter(stop => {
    if (!isTimepoint(stop)) return true
    if (stop.arrival < latest) {
      const [arrival, earlier] = [clockTime(stop.arrival), clockTime(latest)]
      const reason = `arrives at ${arrival}, but leaves an earlier stop at ${earlier}`
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
