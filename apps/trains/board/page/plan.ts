import type { Diagram, Point } from '../diagram.js'

/** A path along the tracks: its points, and the distance from each to the next, in pixels. */
export interface Way {
  readonly points: readonly Point[]
  readonly lengths: readonly number[]
  readonly length: number
}

/** Space around the stations of a wide diagram for their names and waiters, in pixels. */
const WIDE = { left: 30, right: 130, top: 130, bottom: 100 }
/** The same space in an upright diagram, in pixels. */
const UPRIGHT = { left: 50, right: 190, top: 20, bottom: 20 }
/** Minimum width of a wide diagram, in pixels. A narrower one is upright. */
const MIN_WIDE = 600
/** Maximum height of a wide diagram, in pixels. */
const MAX_HEIGHT = 680
/** Maximum height for each station in an upright diagram, in pixels. */
const STATION_HEIGHT = 24
/** Minimum distance between two names, in pixels. A closer name is shown only if its station is selected. */
const NEAR = 15

/** The position of a station that the diagram does not have yet. */
export const UNSEEN: Point = { x: -1000, y: -1000 }

/** The positions of the stations in pixels, and the paths between them. */
export class Plan {
  readonly diagram: Diagram
  readonly width: number
  readonly height: number
  /** Whether the diagram runs from top to bottom, for a narrow page. */
  readonly isUpright: boolean
  readonly points: readonly Point[]
  readonly #neighbours: ReadonlyMap<number, readonly number[]>
  readonly #ways = new Map<string, Way>()

  constructor(diagram: Diagram, width: number) {
    this.diagram = diagram
    this.width = width
    this.isUpright = width < MIN_WIDE
    const room = this.isUpright ? UPRIGHT : WIDE
    const extent = Math.max(0.01, ...diagram.stations.map(({ y }) => y))
    const inner = width - room.left - room.right
    if (this.isUpright) {
      const long = Math.min(1500, diagram.stations.length * STATION_HEIGHT)
      const across = Math.min(long, inner / extent)
      this.points = diagram.stations.map(({ x, y }) => ({
        x: room.left + y * across,
        y: room.top + x * long,
      }))
      this.height = long + room.top + room.bottom
    } else {
      const scale = Math.min(inner, (MAX_HEIGHT - room.top - room.bottom) / extent)
      const left = room.left + (inner - scale) / 2
      this.points = diagram.stations.map(({ x, y }) => ({ x: left + x * scale, y: room.top + y * scale }))
      this.height = Math.round(extent * scale) + room.top + room.bottom
    }
    const neighbours = diagram.stations.map((): number[] => [])
    for (const [one, other] of diagram.tracks) {
      neighbours[one]!.push(other)
      neighbours[other]!.push(one)
    }
    this.#neighbours = new Map(neighbours.entries())
  }

  /** The stations in the order of the diagram. */
  get order(): readonly number[] {
    const along = this.isUpright ? 'y' : 'x'
    return [...this.points.keys()].sort((one, other) => this.points[one]![along] - this.points[other]![along])
  }

  /** The stations whose names are shown, because they do not overlap. */
  get named(): ReadonlySet<number> {
    const named = new Set<number>()
    // Names in a wide diagram are slanted, so this measures their distance at a right angle to them.
    const across = ({ x, y }: Point): number => (this.isUpright ? y : x * Math.sin(0.7) + y * Math.cos(0.7))
    const isFar = (one: Point, other: Point): boolean => Math.abs(one.y - other.y) > 120
    for (const [index, point] of this.points.entries()) {
      const isFree = [...named].every(other => {
        const there = this.points[other]!
        return Math.abs(across(there) - across(point)) >= NEAR || isFar(there, point)
      })
      if (isFree) named.add(index)
    }
    return named
  }

  /** Returns the shortest path between two stations. */
  way(from: number, to: number): Way {
    const name = `${from} ${to}`
    let way = this.#ways.get(name)
    if (!way) {
      const points = this.#route(from, to).map(station => this.points[station] ?? UNSEEN)
      const lengths = points
        .slice(1)
        .map(({ x, y }, index) => Math.hypot(x - points[index]!.x, y - points[index]!.y))
      way = { points, lengths, length: lengths.reduce((sum, length) => sum + length, 0) }
      this.#ways.set(name, way)
    }
    return way
  }

  /** Returns the stations of the shortest path, including both ends, by Dijkstra's algorithm. */
  #route(from: number, to: number): readonly number[] {
    if (this.#neighbours.get(from)?.includes(to)) return [from, to]
    const far = new Map([[from, 0]])
    const before = new Map<number, number>()
    const open = new Set([from])
    while (open.size > 0) {
      const next = [...open].reduce((one, other) => (far.get(other)! < far.get(one)! ? other : one))
      if (next === to) break
      open.delete(next)
      for (const other of this.#neighbours.get(next) ?? []) {
        const [a, b] = [this.points[next]!, this.points[other]!]
        const way = far.get(next)! + Math.hypot(a.x - b.x, a.y - b.y)
        if (way >= (far.get(other) ?? Infinity)) continue
        far.set(other, way)
        before.set(other, next)
        open.add(other)
      }
    }
    if (!before.has(to)) return [from, to]
    const route = [to]
    for (let stop = before.get(to); stop !== undefined; stop = before.get(stop)) route.unshift(stop)
    return route
  }
}
