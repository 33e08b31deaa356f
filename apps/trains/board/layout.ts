import type { Place } from '../input/source.js'
import type { Point, Track } from './diagram.js'

/** Fraction of a distance that depends on the order of the stations. The map determines the rest. */
const ORDER_SHARE = 0.6
/** Number of rounds that move stations without a place between their neighbours. */
const ROUNDS = 20

/**
 * Lays out stations as a diagram: a map that is rotated to be wider than high, with crowded parts pulled apart. Puts a
 * station without a place between its neighbours. If fewer than two stations have a place, puts all of them on a
 * circle.
 * @param tracks pairs of stations, by their index.
 */
export function layOut(places: readonly (Place | undefined)[], tracks: readonly Track[]): Point[] {
  const known = places.filter(place => place !== undefined)
  if (known.length < 2) return onCircle(places.length)
  const points = places.map(place => place && flat(place, known[0]!))
  const turned = turn(withNeighbours(points, tracks))
  return fitted(spread(turned))
}

function onCircle(count: number): Point[] {
  return Array.from({ length: count }, (_, index) => {
    const angle = (2 * Math.PI * index) / count
    return { x: 0.5 + Math.sin(angle) / 2, y: 0.25 - Math.cos(angle) / 4 }
  })
}

/** Returns the position of a place relative to another, on a map of a small part of the earth. */
function flat({ latitude, longitude }: Place, from: Place): Point {
  // The shorter way around the earth, so that a network may cross the 180th meridian.
  const east = ((longitude - from.longitude + 540) % 360) - 180
  return { x: east * Math.cos((from.latitude * Math.PI) / 180), y: from.latitude - latitude }
}

function withNeighbours(points: readonly (Point | undefined)[], tracks: readonly Track[]): Point[] {
  const known = points.filter(point => point !== undefined)
  const center = middleOf(known)
  const placed = points.map(point => point ?? center)
  const lost = points.flatMap((point, index) => (point ? [] : [index]))
  const neighbours = new Map(lost.map(index => [index, [] as number[]]))
  for (const [one, other] of tracks) {
    neighbours.get(one)?.push(other)
    neighbours.get(other)?.push(one)
  }
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, others] of neighbours) {
      if (others.length > 0) placed[index] = middleOf(others.map(other => placed[other]!))
    }
  }
  return placed
}

/** Rotates the points so that their longest extent is horizontal. */
function turn(points: readonly Point[]): Point[] {
  const center = middleOf(points)
  const moved = points.map(({ x, y }) => ({ x: x - center.x, y: y - center.y }))
  const xx = mean(moved.map(({ x }) => x * x))
  const yy = mean(moved.map(({ y }) => y * y))
  const xy = mean(moved.map(({ x, y }) => x * y))
  // The direction of the first principal component.
  const angle = Math.atan2(2 * xy, xx - yy) / 2
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)]
  return moved.map(({ x, y }) => ({ x: x * cos + y * sin, y: y * cos - x * sin }))
}

/** Pulls crowded parts apart. In each direction, the position depends partly on the order of the points. */
function spread(points: readonly Point[]): Point[] {
  const xs = ordered(points.map(({ x }) => x))
  const ys = ordered(points.map(({ y }) => y))
  return points.map((_, index) => ({ x: xs[index]!, y: ys[index]! }))
}

function ordered(values: readonly number[]): number[] {
  const sorted = [...new Set(values)].sort((a, b) => a - b)
  const [least, extent] = [sorted[0]!, sorted.at(-1)! - sorted[0]!]
  const rank = new Map(sorted.map((value, index) => [value, index / Math.max(1, sorted.length - 1)]))
  return values.map(value => (1 - ORDER_SHARE) * (value - least) + ORDER_SHARE * extent * rank.get(value)!)
}

function fitted(points: readonly Point[]): Point[] {
  const left = Math.min(...points.map(({ x }) => x))
  const top = Math.min(...points.map(({ y }) => y))
  const width = Math.max(...points.map(({ x }) => x)) - left || 1
  return points.map(({ x, y }) => ({ x: (x - left) / width, y: (y - top) / width }))
}

function middleOf(points: readonly Point[]): Point {
  return { x: mean(points.map(({ x }) => x)), y: mean(points.map(({ y }) => y)) }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
