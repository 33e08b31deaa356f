import { getOrInsert } from '../get-or-insert.js'
import type { Place } from '../input/source.js'
import { flat, type Track } from './layout.js'

/** A way by other tracks that is longer by no more than this is the same track. */
const DETOUR = 1.25

/**
 * The tracks that trains with these stops run on. A train that passes stations without a stop runs on the track of
 * those that stop there, and has none of its own.
 * @param patterns stations in the order of a train's stops.
 * @param places of the stations.
 */
export function tracksOf(
  patterns: readonly (readonly number[])[],
  places: readonly (Place | undefined)[],
): Track[] {
  const tracks = new Map<string, Track>()
  const withStops = new Set<string>()
  for (const pattern of patterns) {
    for (const [index, station] of pattern.entries()) {
      const next = pattern[index + 1]
      if (next !== undefined) tracks.set(trackName(station, next), [station, next])
      for (const later of pattern.slice(index + 2)) withStops.add(trackName(station, later))
    }
  }
  return withoutShortcuts(
    [...tracks].filter(([name]) => !withStops.has(name)).map(([, track]) => track),
    places,
  )
}

/** The same for both directions. */
export function trackName(one: number, other: number): string {
  return one < other ? `${one} ${other}` : `${other} ${one}`
}

/** By the greedy spanner of Althöfer and others: the shortest first, each only where those before it lead far round. */
function withoutShortcuts(tracks: readonly Track[], places: readonly (Place | undefined)[]): Track[] {
  const long = tracks.map(track => ({ track, length: lengthOf(track, places) }))
  long.sort((one, other) => one.length - other.length)
  const kept: Track[] = []
  const ways = new Map<number, [station: number, length: number][]>()
  const note = (from: number, to: number, length: number): void => {
    getOrInsert(ways, from, () => []).push([to, length])
  }
  for (const { track, length } of long) {
    const [one, other] = track
    if (length > 0 && isReached(one, other, length * DETOUR, ways)) continue
    kept.push(track)
    note(one, other, length)
    note(other, one, length)
  }
  return kept
}

/** Whether the way from one station to another has at most a given length. */
function isReached(
  from: number,
  to: number,
  most: number,
  ways: ReadonlyMap<number, readonly (readonly [number, number])[]>,
): boolean {
  const left = new Map([[from, most]])
  const open = [from]
  for (let station = open.pop(); station !== undefined; station = open.pop()) {
    for (const [next, length] of ways.get(station) ?? []) {
      const rest = left.get(station)! - length
      if (rest < 0 || rest <= (left.get(next) ?? -1)) continue
      if (next === to) return true
      left.set(next, rest)
      open.push(next)
    }
  }
  return false
}

/** In degrees; 0 where it is not known. */
function lengthOf([one, other]: Track, places: readonly (Place | undefined)[]): number {
  const [a, b] = [places[one], places[other]]
  if (!a || !b) return 0
  const { x, y } = flat(a, b)
  return Math.hypot(x, y)
}
