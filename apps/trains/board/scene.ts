import { emptyLocation, type MutableCounts } from '../domain/location.js'
import { getOrInsert } from '../get-or-insert.js'
import type { Message } from '../messages/message.js'
import { ALREADY_APPLIED } from '../worker/message-processor.js'
import type { SerialMessage } from '../serial.js'
import type { TrainMoves } from './frames.js'
import type { Network } from './network.js'

const MAX_DRAWN = 300
/** Maximum number of new trains in a frame. If there were more, trains would end before a page has drawn them. */
const MAX_NEW = 6
/** The change that a message makes, by its type. Used for an already applied message, whose event does not name it. */
const CHANGES: Readonly<Record<string, string>> = { create: 'created', move: 'moved', delete: 'deleted' }

interface Train {
  location: string
  drawn: Drawn | undefined
}

interface Drawn {
  readonly train: number
  stations: number[]
  isGone: boolean
}

/** The trains and locations that the board shows. */
export class Scene {
  readonly #network: Network
  readonly #trains = new Map<string, Train>()
  readonly counts = new Map<string, MutableCounts>()
  readonly #drawn = new Set<Drawn>()
  readonly #moved = new Set<Drawn>()
  #numbers = 0
  #room = MAX_NEW

  constructor(network: Network) {
    this.#network = network
  }

  /** Number of trains that exist. */
  get running(): number {
    return this.#trains.size
  }

  settle(message: Message, event: string): void {
    const { type, train, location, to } = message as SerialMessage
    const change = event === ALREADY_APPLIED ? CHANGES[type] : event
    if (change === 'created' && location !== undefined) this.#created(train, location)
    else if (change === 'moved' && to !== undefined) this.#went(train, to)
    else if (change === 'deleted') this.#deleted(train)
  }

  /** Returns the trains that have moved since the last frame, or are new in this one. */
  frame(): TrainMoves[] {
    // If few trains are new, draws others that exist.
    this.#drawMore(this.#room)
    const moves = [...this.#moved].map(drawn => ({ ...drawn }))
    for (const drawn of this.#moved) {
      if (drawn.isGone) this.#drawn.delete(drawn)
      drawn.stations = drawn.stations.slice(-1)
    }
    this.#moved.clear()
    this.#room = MAX_NEW
    return moves
  }

  /** Returns trains at their current stations, as many as can be drawn. */
  standing(): TrainMoves[] {
    this.#drawMore(MAX_DRAWN)
    return [...this.#drawn].map(drawn => ({ ...drawn, stations: drawn.stations.slice(-1) }))
  }

  /** Returns the numbers of those of these trains that are drawn. */
  drawn(names: readonly string[]): number[] {
    return names.flatMap(name => this.#trains.get(name)?.drawn?.train ?? [])
  }

  #created(name: string, location: string): void {
    if (this.#trains.has(name)) return
    this.#count(location).created++
    const train: Train = { location, drawn: undefined }
    this.#trains.set(name, train)
    if (this.#room > 0 && this.#draw(train)) this.#room--
  }

  #drawMore(most: number): void {
    let left = most
    for (const train of this.#trains.values()) {
      if (left === 0 || this.#drawn.size === MAX_DRAWN) return
      if (!train.drawn && this.#draw(train)) left--
    }
  }

  /** Starts to draw a train; returns whether it can be drawn. */
  #draw(train: Train): boolean {
    const station = this.#network.stationOf(train.location)
    if (station === undefined || this.#drawn.size === MAX_DRAWN) return false
    train.drawn = { train: ++this.#numbers, stations: [station], isGone: false }
    this.#drawn.add(train.drawn)
    this.#moved.add(train.drawn)
    return true
  }

  #went(name: string, to: string): void {
    const train = this.#trains.get(name)
    if (!train) return
    this.#count(train.location).departed++
    this.#count(to).arrived++
    const [from, station] = [this.#network.stationOf(train.location), this.#network.stationOf(to)]
    train.location = to
    if (from !== undefined && station !== undefined) this.#network.passed(from, station)
    if (!train.drawn || station === undefined) return
    train.drawn.stations.push(station)
    this.#moved.add(train.drawn)
  }

  #deleted(name: string): void {
    const train = this.#trains.get(name)
    if (!train) return
    this.#count(train.location).deleted++
    this.#trains.delete(name)
    if (!train.drawn) return
    train.drawn.isGone = true
    this.#moved.add(train.drawn)
  }

  #count(location: string): MutableCounts {
    return getOrInsert(this.counts, location, () => ({ ...emptyLocation(location) }))
  }
}
