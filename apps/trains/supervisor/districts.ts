import type { Traffic } from './traffic.js'

/** Maximum number of places that are assigned. Messages seldom contend for any other place. */
const MAX_PLACES = 1000

/** Minimum work of a district, as a fraction of an even share. */
const MIN_SHARE = 0.7

/** The worker, counted from 0, that gets the messages of each place. */
export type Districts = ReadonlyMap<string, number>

/**
 * Assigns the places to workers evenly. Keeps places together that trains visit one after another, so that trains
 * seldom change districts. Returns undefined if an even assignment is impossible, because there are few places, or one
 * has most of the work.
 */
export function districtsOf(traffic: Traffic, workers: number): Districts | undefined {
  const left = new Map(traffic.busiest(MAX_PLACES))
  const total = sum(left.values())
  const districts = new Map<string, number>()
  /** Number of transitions between each place and the assigned ones. */
  const affinity = new Map<string, number>()
  for (let worker = 0, done = 0; left.size > 0;) {
    const place = next(left, affinity, traffic)
    done += left.get(place)!
    left.delete(place)
    districts.set(place, worker)
    for (const [other, transitions] of traffic.transitions(place)) {
      affinity.set(other, (affinity.get(other) ?? 0) + transitions)
    }
    if (done >= (total * (worker + 1)) / workers && worker < workers - 1) worker++
  }
  return isEven(districts, traffic, workers) ? districts : undefined
}

/** Whether every worker gets at least `MIN_SHARE` of an even share of the current traffic. */
export function isEven(districts: Districts, traffic: Traffic, workers: number): boolean {
  const loads = new Array<number>(workers).fill(0)
  const messages = traffic.busiest(Infinity)
  for (const [place, count] of messages) {
    const worker = districts.get(place)
    if (worker !== undefined) loads[worker] = loads[worker]! + count
  }
  return Math.min(...loads) >= (MIN_SHARE * sum(messages.values())) / workers
}

/**
 * Returns the place with the greatest part of its transitions from and to assigned places. If there is none, returns
 * the one with the fewest transitions, which is usually at the end of a line.
 */
function next(
  left: ReadonlyMap<string, number>,
  affinity: ReadonlyMap<string, number>,
  traffic: Traffic,
): string {
  let best: string | undefined
  let closest = -Infinity
  for (const place of left.keys()) {
    const transitions = sum(traffic.transitions(place).values())
    const assigned = affinity.get(place) ?? 0
    const closeness = assigned > 0 ? assigned / transitions : -transitions
    if (closeness <= closest) continue
    closest = closeness
    best = place
  }
  return best!
}

function sum(numbers: Iterable<number>): number {
  let total = 0
  for (const number of numbers) total += number
  return total
}
