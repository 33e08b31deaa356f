import { changesOf, type MutableCounts } from './domain/location.js'
import { getOrInsert } from './get-or-insert.js'

/**
 * The expected result, computed in the simplest way: one message after another, in one process, without locks. Shares
 * no code with the message types, because it checks their result.
 */
export class SerialResult {
  readonly #locationOfTrain = new Map<string, string>()
  /** The counts of every location that a train has changed. */
  readonly locations = new Map<string, MutableCounts>()
  #ignored = 0

  /** Applies the next message of the stream. Skips types that change no location. */
  apply(message: SerialMessage): void {
    const at = this.#locationOfTrain.get(message.train)
    switch (message.type) {
      case 'create':
        if (at !== undefined || message.location === undefined) break
        this.#locationOfTrain.set(message.train, message.location)
        this.#countsOf(message.location).created++
        return
      case 'move':
        if (at === undefined || message.to === undefined) break
        this.#countsOf(at).departed++
        this.#countsOf(message.to).arrived++
        this.#locationOfTrain.set(message.train, message.to)
        return
      case 'delete':
        if (at === undefined) break
        this.#countsOf(at).deleted++
        this.#locationOfTrain.delete(message.train)
        return
      default:
        return
    }
    this.#ignored++
  }

  get totals(): { created: number; moved: number; deleted: number; ignored: number } {
    return { ...changesOf(this.locations.values()), ignored: this.#ignored }
  }

  #countsOf(location: string): MutableCounts {
    return getOrInsert(this.locations, location, () => ({ created: 0, deleted: 0, arrived: 0, departed: 0 }))
  }
}

/** The fields of a message that the serial result uses. */
export interface SerialMessage {
  readonly type: string
  readonly train: string
  readonly location?: string
  readonly to?: string
}
