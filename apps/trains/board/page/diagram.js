/**
 * @typedef {import('../network.js').Diagram} Drawing
 * @typedef {import('../frames.js').LockedStation} LockedStation
 * @typedef {{ x: number, y: number }} Point
 * @typedef {{ points: readonly Point[], lengths: readonly number[], length: number }} Way
 */

const SVG = 'http://www.w3.org/2000/svg'
/** Space around the stations for their names and waiters, in pixels. */
const ROOM = { left: 30, right: 130, top: 110, bottom: 110 }
/** Maximum height of the diagram, in pixels. */
const MAX_HEIGHT = 680
/** A name that is nearer than this to another is shown only if its station is selected, in pixels. */
const NEAR = 15
const RADIUS = 6
const UNSEEN = { x: -1000, y: -1000 }
/** Maximum number of waiters that are named at a station. */
const MAX_WAITERS = 2

/** Draws the network, and finds stations and paths between them. */
export class Diagram {
  #svg
  #frame
  #onChoose
  /** @type {Drawing} */
  #drawing = { stations: [], tracks: [], left: 0 }
  /** @type {SVGGElement[]} */
  #stations = []
  /** @type {Map<number, number[]>} */
  #neighbours = new Map()
  /** @type {Map<string, Way>} */
  #ways = new Map()
  /** @type {Point[]} */
  #points = []
  #chosen = -1

  /**
   * @param {SVGSVGElement} svg
   * @param {HTMLElement} frame the element whose width it fills
   * @param {(name: string) => void} onChoose receives the name of the selected station
   */
  constructor(svg, frame, onChoose) {
    this.#svg = svg
    this.#frame = frame
    this.#onChoose = onChoose
    svg.addEventListener('keydown', event => this.#key(event))
    new ResizeObserver(() => this.#draw()).observe(frame)
  }

  /** @param {Drawing} drawing */
  show(drawing) {
    this.#drawing = drawing
    this.#neighbours = new Map(drawing.stations.map((_, index) => [index, []]))
    for (const [one, other] of drawing.tracks) {
      this.#neighbours.get(one)?.push(other)
      this.#neighbours.get(other)?.push(one)
    }
    this.#draw()
  }

  /** @param {readonly LockedStation[]} locked */
  lock(locked) {
    const now = new Map(locked.map(one => [one.station, one]))
    for (const [index, group] of this.#stations.entries()) {
      const lock = now.get(index)
      group.classList.toggle('locked', lock !== undefined)
      const waiting = group.lastElementChild
      const text = lock ? shortened(lock.waiters) : ''
      if (waiting && waiting.textContent !== text) waiting.textContent = text
    }
  }

  /** The selected station; -1 if none. */
  get chosen() {
    return this.#chosen
  }

  /** The size of the drawing in pixels. */
  get size() {
    return { width: this.#frame.clientWidth, height: this.#svg.clientHeight }
  }

  /**
   * Returns the position of a station in pixels, outside the drawing if it is not drawn yet.
   * @param {number} station
   * @returns {Point}
   */
  pointOf(station) {
    return this.#points[station] ?? UNSEEN
  }

  /**
   * Returns the shortest path along the tracks: its points, and the distance from each to the next, in pixels.
   * @param {number} from
   * @param {number} to
   * @returns {Way}
   */
  way(from, to) {
    const name = `${from} ${to}`
    let way = this.#ways.get(name)
    if (!way) {
      const points = this.#route(from, to).map(station => this.pointOf(station))
      const lengths = points
        .slice(1)
        .map(({ x, y }, index) => Math.hypot(x - points[index].x, y - points[index].y))
      way = { points, lengths, length: lengths.reduce((sum, length) => sum + length, 0) }
      this.#ways.set(name, way)
    }
    return way
  }

  /**
   * Returns the stations of the shortest path with both ends, by Dijkstra's algorithm.
   * @param {number} from
   * @param {number} to
   * @returns {readonly number[]}
   */
  #route(from, to) {
    if (this.#neighbours.get(from)?.includes(to)) return [from, to]
    const { stations } = this.#drawing
    const far = new Map([[from, 0]])
    /** @type {Map<number, number>} */
    const before = new Map()
    const open = new Set([from])
    while (open.size > 0) {
      const next = [...open].reduce((one, other) =>
        (far.get(other) ?? 0) < (far.get(one) ?? 0) ? other : one,
      )
      if (next === to) break
      open.delete(next)
      for (const other of this.#neighbours.get(next) ?? []) {
        const [a, b] = [stations[next], stations[other]]
        const way = (far.get(next) ?? 0) + Math.hypot(a.x - b.x, a.y - b.y)
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

  #draw() {
    const { stations, tracks } = this.#drawing
    const width = this.#frame.clientWidth
    if (width === 0 || stations.length === 0) return
    const tall = Math.max(...stations.map(({ y }) => y))
    const scale = Math.min(
      width - ROOM.left - ROOM.right,
      (MAX_HEIGHT - ROOM.top - ROOM.bottom) / (tall || 1),
    )
    const height = Math.round(tall * scale + ROOM.top + ROOM.bottom)
    const left = ROOM.left + (width - ROOM.left - ROOM.right - scale) / 2
    this.#points = stations.map(({ x, y }) => ({ x: left + x * scale, y: ROOM.top + y * scale }))
    this.#ways.clear()
    this.#svg.setAttribute('viewBox', `0 0 ${width} ${height}`)
    this.#svg.setAttribute('height', String(height))
    const lines = tracks.map(([one, other]) => this.#track(this.pointOf(one), this.pointOf(other)))
    const named = spaced(this.#points)
    this.#stations = stations.map(({ name }, index) => this.#station(name, index, named.has(index)))
    const first = this.#stations[this.#chosen] ?? this.#stations[this.#inOrder()[0] ?? 0]
    first?.setAttribute('tabindex', '0')
    const hasFocus = this.#svg.contains(document.activeElement)
    this.#svg.replaceChildren(...lines, ...this.#stations)
    if (hasFocus) first?.focus()
  }

  /**
   * @param {Point} from
   * @param {Point} to
   */
  #track(from, to) {
    const line = document.createElementNS(SVG, 'line')
    line.setAttribute('class', 'track')
    for (const [name, value] of Object.entries({ x1: from.x, y1: from.y, x2: to.x, y2: to.y }))
      line.setAttribute(name, String(value))
    return line
  }

  /**
   * @param {string} name
   * @param {number} index
   * @param {boolean} isNamed
   */
  #station(name, index, isNamed) {
    const { x, y } = this.pointOf(index)
    const group = document.createElementNS(SVG, 'g')
    group.setAttribute('class', isNamed ? 'station' : 'station crowded')
    group.classList.toggle('chosen', index === this.#chosen)
    group.setAttribute('transform', `translate(${x} ${y})`)
    group.setAttribute('tabindex', '-1')
    group.setAttribute('role', 'button')
    group.setAttribute('aria-label', name)
    const circle = document.createElementNS(SVG, 'circle')
    circle.setAttribute('r', String(RADIUS))
    const text = document.createElementNS(SVG, 'text')
    text.setAttribute('transform', `translate(6 ${-RADIUS - 6}) rotate(-40)`)
    text.textContent = name
    const waiting = document.createElementNS(SVG, 'text')
    waiting.setAttribute('class', 'waiting')
    waiting.setAttribute('transform', `translate(4 ${RADIUS + 14}) rotate(40)`)
    group.append(circle, text, waiting)
    group.addEventListener('click', () => this.#choose(index))
    group.addEventListener('focus', () => this.#choose(index))
    return group
  }

  /** @param {number} station */
  #choose(station) {
    this.#stations[this.#chosen]?.classList.remove('chosen')
    this.#stations[this.#chosen]?.setAttribute('tabindex', '-1')
    this.#chosen = station
    this.#stations[station]?.classList.add('chosen')
    this.#stations[station]?.setAttribute('tabindex', '0')
    this.#onChoose(this.#drawing.stations[station].name)
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key]
    if (step === undefined) return
    event.preventDefault()
    const order = this.#inOrder()
    const place = order.indexOf(this.#chosen) + step
    this.#stations[order[(place + order.length) % order.length] ?? 0]?.focus()
  }

  /** The stations from left to right. */
  #inOrder() {
    return [...this.#points.keys()].sort((one, other) => this.pointOf(one).x - this.pointOf(other).x)
  }
}

/**
 * The first waiters, and the number of the others.
 * @param {readonly string[]} waiters
 */
function shortened(waiters) {
  if (waiters.length === 0) return ''
  const more = waiters.length > MAX_WAITERS ? ` and ${waiters.length - MAX_WAITERS} more` : ''
  return `${waiters.slice(0, MAX_WAITERS).join(', ')}${more}`
}

/**
 * Stations whose names do not overlap.
 * @param {readonly Point[]} points
 */
function spaced(points) {
  /** @type {Set<number>} */
  const named = new Set()
  for (const [index, { x, y }] of points.entries()) {
    // Names are slanted, so their distance is measured at a right angle to them.
    const across = (/** @type {Point} */ point) => point.x * Math.sin(0.7) + point.y * Math.cos(0.7)
    const isFree = [...named].every(
      other =>
        Math.abs(across(points[other]) - across({ x, y })) >= NEAR || Math.abs(points[other].y - y) > 120,
    )
    if (isFree) named.add(index)
  }
  return named
}
