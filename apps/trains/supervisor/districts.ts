import type { Traffic } from './traffic.js'

/** Maximum number of places that are assigned. With more, two messages seldom meet at one. */
const MOST_PLACES = 1000

/** The share of the work that every district gets at least, of an even one. */
const EVEN = 0.7

/** Which worker, counted from 0, gets the messages of a place. */
export type Districts = ReadonlyMap<string, number>

/**
 * Shares the places out so that all workers have the same to do and trains seldom go from one district to another:
 * places that trains pass one after another stay together. Undefined where that is not possible, because there are few
 * places, or one has too much to do.
 */
export function districtsOf(traffic: Traffic, workers: number): Districts | undefined {
  const left = new Map(traffic.busiest(MOST_PLACES))
  const total = sum(left.values())
  const districts = new Map<string, number>()
  /** How much of what goes on at a place goes to and from those that are shared out already. */
  const bonds = new Map<string, number>()
  for (let worker = 0, done = 0; left.size > 0;) {
    const place = next(left, bonds, traffic)
    done += left.get(place)!
    left.delete(place)
    districts.set(place, worker)
    for (const [other, passages] of traffic.passages(place)) {
      bonds.set(other, (bonds.get(other) ?? 0) + passages)
    }
    if (done >= (total * (worker + 1)) / workers && worker < workers - 1) worker++
  }
  return isEven(districts, traffic, workers) ? districts : undefined
}

/** Whether every worker has about as much to do as any other, by what goes on now. */
export function isEven(districts: Districts, traffic: Traffic, workers: number): boolean {
  const loads = new Array<number>(workers).fill(0)
  const messages = traffic.busiest(Infinity)
  for (const [place, count] of messages) {
    const worker = districts.get(place)
    if (worker !== undefined) loads[worker] = loads[worker]! + count
  }
  return Math.min(...loads) >= (EVEN * sum(messages.values())) / workers
}

/** The place that has most to do with those shared out already; at the beginning one at the end of a line. */
function next(
  left: ReadonlyMap<string, number>,
  bonds: ReadonlyMap<string, number>,
  traffic: Traffic,
): string {
  let best: string | undefined
  let closest = -Infinity
  for (const place of left.keys()) {
    const passages = sum(traffic.passages(place).values())
    const bond = bonds.get(place) ?? 0
    const closeness = bond > 0 ? bond / passages : -passages
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
