import type { Store, StoreEntry } from '../index.js'
import { milliseconds } from '../duration.js'

/** A time for which something is done once: a period of the wall clock, or whatever has this name. */
export interface Slot {
  readonly name: string
  /** When a period begins: milliseconds since 1970. A later one makes all earlier ones void. */
  readonly begins: number | undefined
}

const PERIOD = /^\d+(?:\.\d+)?(?:ms|s|m|h|d)$/

/**
 * A slot of the command line: `1h` is the hour of the wall clock, in UTC; any other text is the slot's own name.
 * @param now milliseconds since 1970.
 */
export function slotOf(text: string, now: number): Slot {
  if (!PERIOD.test(text)) return { name: text, begins: undefined }
  const length = milliseconds('--once-per', text, { least: 1, most: Infinity })
  const begins = Math.floor(now / length) * length
  return { name: `${text} from ${new Date(begins).toISOString()}`, begins }
}

/** The store in which it is written down what was done last. */
export const RUNS = 'signalbox-runs'

/** What was done last under some locks. */
export class LastRun {
  readonly #store: Store
  readonly #key: string
  readonly #entry: StoreEntry<Slot> | undefined

  private constructor(store: Store, key: string, entry: StoreEntry<Slot> | undefined) {
    this.#store = store
    this.#key = key
    this.#entry = entry
  }

  /** Reads it. The locks have to be held. @throws as `Store.get` */
  static async of(store: Store, locks: readonly string[]): Promise<LastRun> {
    const key = [...new Set(locks)].sort().join(' ')
    return new LastRun(store, key, await store.get<Slot>(key))
  }

  /** Whether it was for this slot, or for a later one. */
  covers({ name, begins }: Slot): boolean {
    const last = this.#entry?.value
    if (!last) return false
    if (begins !== undefined && last.begins !== undefined) return last.begins >= begins
    return last.name === name
  }

  /**
   * Writes down that it was done for this slot, unless another process has written since.
   * @throws as `Store.compareAndSet`
   */
  async done(slot: Slot): Promise<void> {
    await this.#store.compareAndSet(this.#key, this.#entry?.version ?? 0, slot)
  }
}
