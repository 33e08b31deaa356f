import type { Clock } from 'signalbox/engine'
import type { EntryStore } from './entry-store.js'

/** The key of the entry with the floor, in the map of the table. */
const FLOOR_KEY = 'floor'
/** Maximum age of the floor with which an entry is created, in milliseconds. An older one is read again. */
const REFRESH_AFTER = 10_000

/**
 * Minimum time from raising the floor above the numbers of an entry until that entry is deleted, and maximum age of a
 * floor when the entry that was created with it is confirmed, in milliseconds. So if the floor was read before it was
 * raised, the old entry was still there, and no new one was created.
 */
export const FLOOR_LASTS = 30_000

/**
 * An upper bound of all numbers and versions in deleted entries. The numbers of a new entry are above it, so that the
 * tokens and versions of a key rise even if its entry was deleted.
 */
export class Floor {
  readonly #store: Pick<EntryStore, 'get' | 'add' | 'replace'>
  readonly #clock: Clock
  #value = 0
  #readAt = -Infinity
  #reading: Promise<number> | undefined

  constructor(store: Pick<EntryStore, 'get' | 'add' | 'replace'>, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  /** Whether an entry that was created with the last floor that was read may be used. */
  get isValid(): boolean {
    return this.#clock.now() - this.#readAt < FLOOR_LASTS
  }

  /** Returns the floor for an entry that is created now. @throws errors of the store */
  get(): number | Promise<number> {
    return this.#clock.now() - this.#readAt < REFRESH_AFTER ? this.#value : this.#read()
  }

  /** Raises the floor to this number. Rejects if it is unknown whether that was done. */
  async raise(number: number): Promise<void> {
    for (;;) {
      const text = await this.#store.get(FLOOR_KEY)
      if (numberIn(text) >= number) return
      const after = String(number)
      const isDone =
        text === undefined
          ? (await this.#store.add(FLOOR_KEY, after)) === undefined
          : await this.#store.replace(FLOOR_KEY, text, after)
      if (isDone) return
    }
  }

  #read(): Promise<number> {
    this.#reading ??= this.#readNow().finally(() => (this.#reading = undefined))
    return this.#reading
  }

  async #readNow(): Promise<number> {
    const sentAt = this.#clock.now()
    this.#value = Math.max(this.#value, numberIn(await this.#store.get(FLOOR_KEY)))
    this.#readAt = sentAt
    return this.#value
  }
}

/** Returns the number in a text; 0 for the text of another program. */
function numberIn(text: string | undefined): number {
  const number = Number(text ?? 0)
  return Number.isSafeInteger(number) ? number : 0
}
