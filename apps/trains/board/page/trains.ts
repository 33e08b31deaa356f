import type { NowFrame } from '../frames.js'
import type { Point } from '../diagram.js'
import { UNSEEN, type Plan } from './plan.js'

interface Hop {
  readonly to: number
  readonly begun: number
  readonly duration: number
}

interface Train {
  at: number
  readonly ahead: number[]
  hop: Hop | undefined
  /** Whether the train goes to the right, or down in an upright diagram. */
  isForward: boolean
  isGone: boolean
  fadesSince: number
}

/** Time in which a train catches up with its moves, in milliseconds. */
const CATCH_UP = 2400
/** Minimum and maximum time of a hop between two stations, in milliseconds. */
const MIN_HOP = 80
const MAX_HOP = 800
/** Fraction of the time between two moves in which a train hops. For the rest, it stands at its station. */
const HOP_PART = 0.8
/** Time in which a deleted train fades out, in milliseconds. */
const FADE = 400
/** Maximum number of trains. A hidden page paints nothing, so it does not remove trains that have ended. */
const MAX_DRAWN = 400
const RADIUS = 4
/** Distance of a train from its track, in pixels. */
const OFFSET = 6
/** Distance between trains that stand at the same station, in pixels. */
const STEP = 9
/** Maximum number of trains that stand side by side. */
const MAX_ABREAST = 4

/** Draws trains on a canvas as they move. */
export class Trains {
  readonly #trains = new Map<number, Train>()
  readonly #calm = matchMedia('(prefers-reduced-motion: reduce)')
  /** Minimum time between two moves of a train, in milliseconds; 0: no minimum. */
  pace = 0
  #waiting: ReadonlySet<number> = new Set()
  #canvas: HTMLCanvasElement | undefined
  #plan: Plan | undefined
  #isDrawing = false

  show(canvas: HTMLCanvasElement, plan: Plan): void {
    this.#canvas = canvas
    this.#plan = plan
    this.#draw()
  }

  clear(): void {
    this.#trains.clear()
  }

  take({ trains, waiting }: Pick<NowFrame, 'trains' | 'waiting'>): void {
    for (const { train: number, stations, isGone } of trains) {
      let train = this.#trains.get(number)
      if (!train) {
        train = { at: stations[0]!, ahead: [], hop: undefined, isForward: true, isGone, fadesSince: 0 }
        this.#trains.set(number, train)
      }
      train.ahead.push(...stations.slice(1))
      // Drops the oldest stations if the train can't reach all of them within `CATCH_UP`.
      train.ahead.splice(0, train.ahead.length - CATCH_UP / MIN_HOP)
      train.isGone = isGone
    }
    this.#waiting = new Set(waiting)
    for (const number of this.#trains.keys()) {
      if (this.#trains.size <= MAX_DRAWN) break
      this.#trains.delete(number)
    }
    this.#draw()
  }

  #draw(): void {
    if (this.#isDrawing) return
    this.#isDrawing = true
    requestAnimationFrame(now => this.#paint(now))
  }

  #paint(now: number): void {
    this.#isDrawing = false
    const [canvas, plan] = [this.#canvas, this.#plan]
    const context = canvas?.getContext('2d')
    if (!canvas || !plan || !context) return
    const ratio = devicePixelRatio
    const [width, height] = [Math.round(plan.width * ratio), Math.round(plan.height * ratio)]
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width
      canvas.height = height
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0)
    context.clearRect(0, 0, plan.width, plan.height)
    const colors = colorsOf(canvas)
    const standing = new Map<string, number>()
    let moves = false
    for (const [number, train] of this.#trains) {
      this.#goOn(train, now)
      const isLeaving = train.isGone && !train.hop
      if (isLeaving) train.fadesSince ||= now
      const left = isLeaving ? 1 - (now - train.fadesSince) / FADE : 1
      if (left <= 0) {
        this.#trains.delete(number)
        continue
      }
      moves ||= isLeaving || train.hop !== undefined
      const { x, y } = train.hop ? onTheWay(train, train.hop, plan, now) : standingAt(train, plan, standing)
      context.globalAlpha = left
      context.fillStyle = train.isForward ? colors.forward : colors.backward
      context.beginPath()
      context.arc(x, y, RADIUS, 0, 2 * Math.PI)
      context.fill()
      if (!this.#waiting.has(number)) continue
      context.strokeStyle = colors.waiting
      context.lineWidth = 2
      context.beginPath()
      context.arc(x, y, RADIUS + 3, 0, 2 * Math.PI)
      context.stroke()
    }
    canvas.dataset['trains'] = String(this.#trains.size)
    // Draws the next picture only if a train moves.
    if (moves) this.#draw()
  }

  #goOn(train: Train, now: number): void {
    while (train.hop ? now >= train.hop.begun + train.hop.duration : train.ahead.length > 0) {
      const begun = train.hop ? train.hop.begun + train.hop.duration : now
      if (train.hop) train.at = train.hop.to
      const to = train.ahead.shift()
      if (to === undefined) {
        train.hop = undefined
        return
      }
      const spread = CATCH_UP / (train.ahead.length + 1)
      const longest = this.pace > 0 ? Math.min(MAX_HOP, this.pace * HOP_PART) : MAX_HOP
      const duration = this.#calm.matches ? 0 : Math.min(longest, Math.max(MIN_HOP, spread))
      train.hop = { to, begun, duration }
    }
  }
}

/** Returns the position of a train at its station. Trains at the same station stand side by side. */
function standingAt(
  { at, isForward }: Train,
  { points, isUpright }: Plan,
  standing: Map<string, number>,
): Point {
  const place = `${at} ${isForward}`
  const others = standing.get(place) ?? 0
  standing.set(place, others + 1)
  const { x, y } = points[at] ?? UNSEEN
  const side = (OFFSET + STEP * Math.min(others, MAX_ABREAST - 1)) * (isForward ? 1 : -1)
  // Names are to the right of an upright diagram.
  return isUpright ? { x: x - Math.abs(side), y: y + (isForward ? 4 : -4) } : { x, y: y + side }
}

function onTheWay(train: Train, hop: Hop, plan: Plan, now: number): Point {
  const { points, lengths, length: whole } = plan.way(train.at, hop.to)
  let way = whole * eased(Math.min(1, (now - hop.begun) / hop.duration))
  let part = 0
  while (part < lengths.length - 1 && way > lengths[part]!) way -= lengths[part++]!
  const from = points[part]!
  const to = points[part + 1] ?? from
  const length = lengths[part] || 1
  const [across, along] = [(to.x - from.x) / length, (to.y - from.y) / length]
  const forward = plan.isUpright ? along : across
  if (Math.abs(forward) > 0.01) train.isForward = forward > 0
  return { x: from.x + across * way - along * OFFSET, y: from.y + along * way + across * OFFSET }
}

/** Returns the colors of the legend, which the style sheet defines. */
function colorsOf(canvas: HTMLCanvasElement): { forward: string; backward: string; waiting: string } {
  const read = (name: string): string => {
    const found = canvas.closest('figure')!.querySelector(name)
    return found ? getComputedStyle(found).color : 'gray'
  }
  return { forward: read('.forward'), backward: read('.backward'), waiting: read('.waiting') }
}

function eased(part: number): number {
  return part * part * (3 - 2 * part)
}
