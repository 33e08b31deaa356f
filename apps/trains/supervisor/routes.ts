import { createHash } from 'node:crypto'
import type { Message, NumberedMessage } from '../messages/message.js'
import { districtsOf, isEven, type Districts } from './districts.js'
import { Traffic } from './traffic.js'

/** Number of messages before the first assignment of places. */
const FIRST_REVIEW = 2048
/** Number of messages between reviews of the assignment. */
const REVIEW_INTERVAL = 16_384

/** A train with unfinished messages. */
interface Train {
  /** The worker that has the train's messages. Another worker gets the train only when these are done. */
  worker: number
  /** Number of unfinished messages that the worker has. */
  given: number
  /** The place of the newest message, if known. */
  place: string | undefined
  /** Later messages, with the workers that will get them. */
  readonly waiting: { readonly worker: number; readonly numbered: NumberedMessage }[]
}

/** Messages for a worker. Workers are counted from 0. */
export interface Route {
  readonly worker: number
  readonly messages: readonly NumberedMessage[]
}

/**
 * Chooses the worker of each message. Each worker gets the messages of its own district, so that workers seldom need
 * the same locks. A train that enters another district gets another worker only when its earlier messages are done,
 * which keeps their order. If places can't be assigned to districts, each worker has its own trains.
 */
export class Routes {
  readonly #workers: number
  readonly #placeOf: (message: Message) => string | undefined
  readonly #trains = new Map<string, Train>()
  readonly #traffic = new Traffic()
  #districts: Districts | undefined
  #untilReview = FIRST_REVIEW

  /** @param placeOf returns the place of a message, if known. */
  constructor(workers: number, placeOf: (message: Message) => string | undefined) {
    this.#workers = workers
    this.#placeOf = placeOf
  }

  /** Returns the worker of a message; undefined if it must wait for its train's earlier messages. */
  add(numbered: NumberedMessage): number | undefined {
    const { message } = numbered
    let train = this.#trains.get(message.train)
    const before = train?.place
    const place = this.#placeOf(message) ?? before
    if (place !== undefined) this.#traffic.note(place, before)
    if (--this.#untilReview === 0) this.#review()
    const worker = this.#workerAt(place) ?? train?.waiting.at(-1)?.worker ?? train?.worker
    if (!train) {
      train = { worker: worker ?? workerOf(message.train, this.#workers), given: 1, place, waiting: [] }
      this.#trains.set(message.train, train)
      return train.worker
    }
    train.place = place
    if (train.waiting.length > 0 || worker !== train.worker) {
      train.waiting.push({ worker: worker!, numbered })
      return undefined
    }
    train.given++
    return train.worker
  }

  /** Records that a message is done. Returns the messages of its train that can be sent now. */
  done({ train: name }: Message): Route | undefined {
    const train = this.#trains.get(name)!
    if (--train.given > 0) return undefined
    const { waiting } = train
    if (waiting.length === 0) {
      this.#trains.delete(name)
      return undefined
    }
    train.worker = waiting[0]!.worker
    const others = waiting.findIndex(({ worker }) => worker !== train.worker)
    const given = waiting.splice(0, others < 0 ? waiting.length : others)
    train.given = given.length
    return { worker: train.worker, messages: given.map(({ numbered }) => numbered) }
  }

  #workerAt(place: string | undefined): number | undefined {
    return place === undefined ? undefined : this.#districts?.get(place)
  }

  /** Assigns the places again unless the assignment is still even: a train that changes its worker must wait. */
  #review(): void {
    this.#untilReview = REVIEW_INTERVAL
    if (!this.#districts || !isEven(this.#districts, this.#traffic, this.#workers)) {
      this.#districts = districtsOf(this.#traffic, this.#workers)
    }
    this.#traffic.decay()
  }
}

/**
 * Returns the worker, counted from 0, that gets all messages of a train. The choice depends only on the train's name,
 * and distributes similar names evenly.
 */
function workerOf(train: string, workers: number): number {
  return createHash('md5').update(train).digest().readUInt32BE() % workers
}
