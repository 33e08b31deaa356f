import type { Message, NumberedMessage } from '../messages/message.js'
import { workerOf } from './assignment.js'
import { districtsOf, isEven, type Districts } from './districts.js'
import { Traffic } from './traffic.js'

/** Number of messages after which places are first assigned, and then reviewed repeatedly. */
const FIRST_LOOK = 2048
const LOOK = 16_384

/** A train with messages that are not done. */
interface Train {
  /** The worker that has them; only when none is left may another one get the train. */
  worker: number
  /** How many it has. */
  given: number
  /** Where the newest message happens, as far as that is known. */
  place: string | undefined
  /** Those that come after, with the workers that are to get them. */
  readonly waiting: { readonly worker: number; readonly numbered: NumberedMessage }[]
}

/** Messages for a worker, counted from 0. */
export interface Route {
  readonly worker: number
  readonly messages: readonly NumberedMessage[]
}

/**
 * Which worker gets which message. All workers would want the same locks if each had trains that run everywhere, so
 * each gets what happens at the places of its own district. A train that goes to another district gets another worker
 * when all of its earlier messages are done, so their order stays. Where places can't be shared out, trains are.
 */
export class Routes {
  readonly #workers: number
  readonly #placeOf: (message: Message) => string | undefined
  readonly #trains = new Map<string, Train>()
  readonly #traffic = new Traffic()
  #districts: Districts | undefined
  #untilLook = FIRST_LOOK

  /** @param placeOf where a message happens, as far as that is known. */
  constructor(workers: number, placeOf: (message: Message) => string | undefined) {
    this.#workers = workers
    this.#placeOf = placeOf
  }

  /** The worker that gets a message; undefined when it has to wait for its train's earlier ones. */
  add(numbered: NumberedMessage): number | undefined {
    const { message } = numbered
    let train = this.#trains.get(message.train)
    const before = train?.place
    const place = this.#placeOf(message) ?? before
    if (place !== undefined) this.#traffic.note(place, before)
    if (--this.#untilLook === 0) this.#look()
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

  /** Notes that a message is done; gives those of its train that need not wait any longer. */
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

  /** Shares the places out, unless they are shared out evenly already: a train that changes its worker has to wait. */
  #look(): void {
    this.#untilLook = LOOK
    if (!this.#districts || !isEven(this.#districts, this.#traffic, this.#workers)) {
      this.#districts = districtsOf(this.#traffic, this.#workers)
    }
    this.#traffic.fade()
  }
}
