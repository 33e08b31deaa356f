/** Minimum number of deletions before the remaining entries move. */
const MOVE_AFTER = 256

/**
 * A map for entries that are added and deleted all the time.
 *
 * When the table of a Map is full of deleted entries, V8 allocates a new one, and the old table keeps a reference to
 * it. The old tables of a long-lived Map are garbage that only a full collection frees. Until then each keeps the next
 * one alive, with all its entries, so every entry that ever existed survives the cheap collections. Here the remaining
 * entries move to a new Map from time to time, to which no old table refers.
 */
export class TransientMap<K, V> {
  #entries = new Map<K, V>()
  #deleted = 0

  get size(): number {
    return this.#entries.size
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)
  }

  has(key: K): boolean {
    return this.#entries.has(key)
  }

  set(key: K, value: V): void {
    this.#entries.set(key, value)
  }

  /** @returns whether the key existed */
  delete(key: K): boolean {
    if (!this.#entries.delete(key)) return false
    if (++this.#deleted > MOVE_AFTER + this.#entries.size) {
      this.#deleted = 0
      this.#entries = new Map(this.#entries)
    }
    return true
  }

  /** The keys in the order of setting. Keys that are set during the iteration may be missing. */
  keys(): IterableIterator<K> {
    return this.#entries.keys()
  }

  /** The values in the order of setting. Values that are set during the iteration may be missing. */
  values(): IterableIterator<V> {
    return this.#entries.values()
  }
}
