import { getOrInsert } from '../get-or-insert.js'
import type { Place } from '../input/source.js'
import type { Track } from './diagram.js'
import { flat } from './layout.js'

/** A track is left out if a path over other tracks is at most this many times as long. */
const DETOUR = 1.25

/**
 * Returns the tracks of trains with these stops. A train that passes a station without a stop uses the tracks of the
 * trains that stop there.
 * @param patterns each the stations of a train in the order of its stops.
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

/** Returns the name of a track, which is the same in both directions. */
export function trackName(one: number, other: number): string {
  return one < other ? `${one} ${other}` : `${other} ${one}`
}

/**
 * The greedy spanner of Althöfer et al. Adds the shortest tracks first. Skips a track if the tracks so far form a path
 * of at most `DETOUR` times its length.
 */
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

/** Whether a path from one station to another has at most this length. */
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

/** Returns the length of a track in degrees; 0 if unknown. */
function lengthOf([one, other]: Track, places: readonly (Place | undefined)[]): number {
  const [a, b] = [places[one], places[other]]
  if (!a || !b) return 0
  const { x, y } = flat(a, b)
  return Math.hypot(x, y)
}
