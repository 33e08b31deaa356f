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

interface GivenStop extends StopTime {
  readonly arrival: number
  readonly departure: number
}

/**
 * The stops of one trip in the order of their sequence numbers, each with its times. Stops without times are spread
 * evenly between the timepoints around them. A line that can't be true is told to `reject` and left out: a place
 * in the sequence that is taken, a time before that of an earlier stop, no time at either end of the trip.
 */
export function timedStops(
  lines: readonly StopTime[],
  reject: (line: number, reason: string) => void,
): readonly TimedStop[] {
  const possible = inForwardOrder(inSequence(lines, reject), reject)
  const first = possible.findIndex(isGiven)
  const last = possible.findLastIndex(isGiven)
  for (const [index, stop] of possible.entries()) {
    if (first === -1) reject(stop.line, 'no stop of the trip has a time')
    else if (index < first) reject(stop.line, 'the first stop of a trip must have a time')
    else if (index > last) reject(stop.line, 'the last stop of a trip must have a time')
  }
  return first === -1 ? [] : interpolated(possible.slice(first, last + 1))
}

function inSequence(
  lines: readonly StopTime[],
  reject: (line: number, reason: string) => void,
): readonly StopTime[] {
  const sorted = lines.toSorted((a, b) => a.sequence - b.sequence || a.line - b.line)
  return sorted.filter((stop, index) => {
    const same = index > 0 && sorted[index - 1]!.sequence === stop.sequence
    if (same) reject(stop.line, `stop_sequence ${stop.sequence} was on an earlier line of this trip already`)
    return !same
  })
}

function inForwardOrder(
  stops: readonly StopTime[],
  reject: (line: number, reason: string) => void,
): readonly StopTime[] {
  let latest = 0
  return stops.filter(stop => {
    if (!isGiven(stop)) return true
    if (stop.arrival < latest) {
      reject(
        stop.line,
        `arrives at ${clockTime(stop.arrival)}, but the trip leaves an earlier stop at ${clockTime(latest)}`,
      )
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
    if (!isGiven(stop)) continue
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

function isGiven(stop: StopTime): stop is GivenStop {
  return stop.arrival !== undefined && stop.departure !== undefined
}

function clockTime(seconds: number): string {
  const parts = [seconds / 3600, (seconds / 60) % 60, seconds % 60]
  return parts.map(part => String(Math.floor(part)).padStart(2, '0')).join(':')
}
