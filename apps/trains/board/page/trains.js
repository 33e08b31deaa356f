/**
 * @typedef {import('../frames.js').TrainMoves} TrainMoves
 * @typedef {import('./diagram.js').Diagram} Diagram
 * @typedef {{ to: number, begun: number, duration: number }} Hop
 * @typedef {{ at: number, ahead: number[], hop: Hop | undefined, isEast: boolean, isGone: boolean, fades: number }}
 * Train
 */

/** Time in which a train catches up with its moves, and limits of a single hop, in milliseconds. */
const CATCH_UP = 2400
const MIN_HOP = 80
const MAX_HOP = 800
/** Time in which a deleted train fades out, in milliseconds. */
const FADE = 400
/** Maximum number of trains: a hidden page may have missed the end of many. */
const MAX_DRAWN = 400
const RADIUS = 4
/** Distance of a train from its track, in pixels. */
const OFFSET = 5

/** Draws trains on the network as they move. */
export class Trains {
  #canvas
  #diagram
  /** @type {Map<number, Train>} */
  #trains = new Map()
  #isDrawing = false
  #calm = matchMedia('(prefers-reduced-motion: reduce)')
  #colors = { east: '', west: '' }

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {Diagram} diagram
   */
  constructor(canvas, diagram) {
    this.#canvas = canvas
    this.#diagram = diagram
    this.#readColors()
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#readColors())
  }

  /** @param {readonly TrainMoves[]} moves */
  take(moves) {
    for (const { train: number, stations, isGone } of moves) {
      let train = this.#trains.get(number)
      if (!train) {
        train = { at: stations[0] ?? 0, ahead: [], hop: undefined, isEast: true, isGone: false, fades: 0 }
        this.#trains.set(number, train)
      }
      train.ahead.push(...stations.slice(1))
      train.isGone = isGone
    }
    for (const number of this.#trains.keys()) {
      if (this.#trains.size <= MAX_DRAWN) break
      this.#trains.delete(number)
    }
    if (this.#isDrawing) return
    this.#isDrawing = true
    requestAnimationFrame(now => this.#draw(now))
  }

  /** @param {number} now */
  #draw(now) {
    const { width, height } = this.#diagram.size
    const ratio = devicePixelRatio
    if (
      this.#canvas.width !== Math.round(width * ratio) ||
      this.#canvas.height !== Math.round(height * ratio)
    ) {
      this.#canvas.width = Math.round(width * ratio)
      this.#canvas.height = Math.round(height * ratio)
      this.#canvas.style.width = `${width}px`
      this.#canvas.style.height = `${height}px`
    }
    const context = this.#canvas.getContext('2d')
    if (!context) return
    context.setTransform(ratio, 0, 0, ratio, 0, 0)
    context.clearRect(0, 0, width, height)
    for (const [number, train] of this.#trains) {
      this.#goOn(train, now)
      const isLeaving = train.isGone && !train.hop && train.ahead.length === 0
      if (isLeaving) train.fades ||= now
      const left = isLeaving ? 1 - (now - train.fades) / FADE : 1
      if (left <= 0) {
        this.#trains.delete(number)
        continue
      }
      const { x, y } = this.#place(train, now)
      context.globalAlpha = left
      context.fillStyle = train.isEast ? this.#colors.east : this.#colors.west
      context.beginPath()
      context.arc(x, y, RADIUS, 0, 2 * Math.PI)
      context.fill()
    }
    this.#canvas.dataset['trains'] = String(this.#trains.size)
    // A picture without movement is drawn once.
    this.#isDrawing = [...this.#trains.values()].some(
      ({ hop, ahead, isGone }) => hop || ahead.length > 0 || isGone,
    )
    if (this.#isDrawing) requestAnimationFrame(next => this.#draw(next))
  }

  /**
   * @param {Train} train
   * @param {number} now
   */
  #goOn(train, now) {
    while (train.hop ? now >= train.hop.begun + train.hop.duration : train.ahead.length > 0) {
      const begun = train.hop ? train.hop.begun + train.hop.duration : now
      if (train.hop) train.at = train.hop.to
      const next = train.ahead.shift()
      if (next === undefined) {
        train.hop = undefined
        return
      }
      const spread = CATCH_UP / (train.ahead.length + 1)
      const duration = this.#calm.matches ? 0 : Math.min(MAX_HOP, Math.max(MIN_HOP, spread))
      train.hop = { to: next, begun, duration }
    }
  }

  /**
   * Returns the position of a train in pixels.
   * @param {Train} train
   * @param {number} now
   */
  #place(train, now) {
    const { hop } = train
    if (!hop) {
      const { x, y } = this.#diagram.pointOf(train.at)
      return { x, y: y + (train.isEast ? OFFSET : -OFFSET) }
    }
    const { points, lengths, length: whole } = this.#diagram.way(train.at, hop.to)
    let way = whole * eased(Math.min(1, (now - hop.begun) / hop.duration))
    let part = 0
    while (part < lengths.length - 1 && way > lengths[part]) way -= lengths[part++]
    const [from, to] = [points[part], points[part + 1] ?? points[part]]
    const length = lengths[part] || 1
    const [across, along] = [(to.x - from.x) / length, (to.y - from.y) / length]
    if (Math.abs(across) > 0.01) train.isEast = across > 0
    return { x: from.x + across * way - along * OFFSET, y: from.y + along * way + across * OFFSET }
  }

  #readColors() {
    // The colours are defined in the style sheet.
    const read = (/** @type {string} */ name) => {
      const found = document.querySelector(name)
      return found ? getComputedStyle(found).color : 'gray'
    }
    this.#colors = { east: read('.east'), west: read('.west') }
  }
}

/** @param {number} part from 0 to 1 */
function eased(part) {
  return part * part * (3 - 2 * part)
}
