import type { LocationCounts } from './domain/location.js'

/**
 * What the locations must show in the end, worked out the plainest way: one message after the other, in one process,
 * without locks. It is what the tracker's result is checked against, so it shares nothing with the message types.
 */
export class SerialResult {
  readonly #locationOfTrain = new Map<string, string>()
  readonly #tallies = new Map<string, Tally>()
  #created = 0
  #moved = 0
  #deleted = 0
  #ignored = 0

  /** Takes the next message of the stream. It skips types that change no location. */
  apply(message: SerialMessage): void {
    const at = this.#locationOfTrain.get(message.train)
    switch (message.type) {
      case 'create':
        if (at !== undefined || message.location === undefined) {
          this.#ignored++
          return
        }
        this.#locationOfTrain.set(message.train, message.location)
        this.#tally(message.location).created++
        this.#created++
        return
      case 'move':
        if (at === undefined || message.to === undefined) {
          this.#ignored++
          return
        }
        this.#tally(at).departed++
        this.#tally(message.to).arrived++
        this.#locationOfTrain.set(message.train, message.to)
        this.#moved++
        return
      case 'delete':
        if (at === undefined) {
          this.#ignored++
          return
        }
        this.#tally(at).deleted++
        this.#locationOfTrain.delete(message.train)
        this.#deleted++
    }
  }

  /** The tallies of every location that any train has touched. */
  get locations(): ReadonlyMap<string, Readonly<Tally>> {
    return this.#tallies
  }

  get totals(): { created: number; moved: number; deleted: number; ignored: number } {
    return { created: this.#created, moved: this.#moved, deleted: this.#deleted, ignored: this.#ignored }
  }

  #tally(location: string): Tally {
    let tally = this.#tallies.get(location)
    if (!tally) {
      tally = { created: 0, deleted: 0, arrived: 0, departed: 0 }
      this.#tallies.set(location, tally)
    }
    return tally
  }
}

/** Trains created, deleted, arrived and departed at a location. */
export type Tally = { -readonly [Count in keyof LocationCounts]: number }

/** The fields of a message that matter here. */
export interface SerialMessage {
  readonly type: string
  readonly train: string
  readonly location?: string
  readonly to?: string
}
