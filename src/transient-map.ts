/** How many entries go at least before the rest moves. */
const MOVE_AFTER = 256

/**
 * A map whose entries come and go all the time.
 *
 * V8 makes a new table whenever a Map's is full of entries that were deleted, and the old table keeps a reference to
 * the new one. Old tables of a Map that lives for long are garbage which only a full collection finds, and until then
 * each keeps alive the next, with all that is in it: so every entry that ever was survives the cheap collections. Here
 * the entries that are left move to a new Map now and then, to which no old table leads.
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

  /** Whether it was there. */
  delete(key: K): boolean {
    if (!this.#entries.delete(key)) return false
    if (++this.#deleted > MOVE_AFTER + this.#entries.size) {
      this.#deleted = 0
      this.#entries = new Map(this.#entries)
    }
    return true
  }

  /** The keys in the order of setting; those that are set while it runs may be left out. */
  keys(): IterableIterator<K> {
    return this.#entries.keys()
  }

  /** The values in the order of setting; those that are set while it runs may be left out. */
  values(): IterableIterator<V> {
    return this.#entries.values()
  }
}
