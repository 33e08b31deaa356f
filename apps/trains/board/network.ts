import { getOrInsert } from '../get-or-insert.js'
import type { Geography, Place } from '../input/source.js'
import type { Diagram, Track } from './diagram.js'
import { layOut } from './layout.js'

/** Maximum number of stations that are drawn. Prefers the stations with the most distinct patterns of stops. */
const MAX_STATIONS = 1500
/** Maximum number of tracks that are added when trains use them. */
const MAX_TRACKS = 6000

/**
 * The stations at which trains stop, and the tracks between them. A station includes all locations that belong to it or
 * are at the same point. If the input has no geography, stations and tracks are added when trains use them.
 */
export class Network {
  /** Number of changes. A diagram is stale if this number has increased since. */
  changes = 0
  /** Number of stations that are not drawn. */
  #left = 0
  readonly #names: ReadonlyMap<string, string>
  /** Whether the input lists all tracks. */
  readonly #isKnown: boolean
  readonly #places: (Place | undefined)[] = []
  readonly #stationNames: string[] = []
  readonly #stationOf = new Map<string, number | undefined>()
  readonly #tracks = new Map<string, Track>()

  /** @param names of locations and stations. */
  constructor(names: ReadonlyMap<string, string>, geography: Geography | undefined) {
    this.#names = names
    this.#isKnown = geography !== undefined
    if (geography) this.#read(geography)
  }

  /** Returns the index of a location's station; undefined if it is not drawn. */
  stationOf(location: string): number | undefined {
    if (!this.#stationOf.has(location)) this.#add([location], location, undefined)
    return this.#stationOf.get(location)
  }

  /** Returns the name of a location's station, or of the location if its station is not drawn. */
  nameOf(location: string): string {
    const station = this.stationOf(location)
    return station === undefined ? this.#names.get(location) || location : this.#stationNames[station]!
  }

  passed(from: number, to: number): void {
    const track = trackName(from, to)
    if (this.#isKnown || from === to || this.#tracks.has(track) || this.#tracks.size >= MAX_TRACKS) return
    this.#tracks.set(track, [from, to])
    this.changes++
  }

  diagram(): Diagram {
    const tracks = [...this.#tracks.values()]
    const points = layOut(this.#places, tracks)
    const stations = this.#stationNames.map((name, index) => ({ name, ...points[index]! }))
    return { stations, tracks, left: this.#left }
  }

  #read({ patterns, stationOf, placeOf }: Geography): void {
    const stations = new Map<
      string,
      { id: string; members: Set<string>; place: Place | undefined; calls: number }
    >()
    for (const location of patterns.flat()) {
      const id = stationOf(location)
      const place = placeOf(id) ?? placeOf(location)
      const point = place ? `${place.latitude} ${place.longitude}` : `id ${id}`
      const station = getOrInsert(stations, point, () => ({ id, members: new Set(), place, calls: 0 }))
      station.members.add(location)
      station.calls++
    }
    const busiest = [...stations.values()].sort((one, other) => other.calls - one.calls)
    for (const { id, members, place } of busiest) this.#add(members, id, place)
    const tracks = tracksOf(patterns.map(pattern => this.#stationsOf(pattern)))
    for (const track of tracks) this.#tracks.set(trackName(...track), track)
  }

  #add(locations: Iterable<string>, id: string, place: Place | undefined): void {
    const isDrawn = this.#places.length < MAX_STATIONS
    for (const location of locations) this.#stationOf.set(location, isDrawn ? this.#places.length : undefined)
    if (!isDrawn) {
      this.#left++
      return
    }
    this.#places.push(place)
    this.#stationNames.push(this.#names.get(id) || id)
    this.changes++
  }

  #stationsOf(pattern: readonly string[]): number[] {
    const stations = pattern.map(location => this.stationOf(location)).filter(one => one !== undefined)
    return stations.filter((station, index) => station !== stations[index - 1])
  }
}

/**
 * Returns the tracks of trains with these stops. A train that passes a station without a stop uses the tracks of the
 * trains that stop there.
 * @param patterns each the stations of a train in the order of its stops.
 */
function tracksOf(patterns: readonly (readonly number[])[]): Track[] {
  const tracks = new Map<string, Track>()
  const withStops = new Set<string>()
  for (const pattern of patterns) {
    for (const [index, station] of pattern.entries()) {
      const next = pattern[index + 1]
      if (next !== undefined) tracks.set(trackName(station, next), [station, next])
      for (const later of pattern.slice(index + 2)) withStops.add(trackName(station, later))
    }
  }
  return [...tracks].filter(([name]) => !withStops.has(name)).map(([, track]) => track)
}

/** Returns the name of a track, which is the same in both directions. */
function trackName(one: number, other: number): string {
  return one < other ? `${one} ${other}` : `${other} ${one}`
}
