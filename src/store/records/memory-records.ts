import type { FoundRecord, Records } from './records.js'

/** Records in a variable, for tests, and for boxes of one process that share them. */
export function memoryRecords(): Records<number> {
  return new MemoryRecords()
}

class MemoryRecords implements Records<number> {
  readonly #records = new Map<string, FoundRecord<number>>()
  /** Until when records are kept, unless forever: times of `performance.now()`, in the order of the writes. */
  readonly #passing = new Map<string, number>()
  #version = 0

  async get(key: string): Promise<FoundRecord<number> | undefined> {
    return this.#records.get(key)
  }

  async compareAndSet(
    key: string,
    version: number | undefined,
    text: string,
    keep: number | undefined,
  ): Promise<number | undefined> {
    const now = performance.now()
    this.#drop(now)
    if (this.#records.get(key)?.version !== version) return undefined
    this.#records.set(key, { text, version: ++this.#version })
    this.#passing.delete(key)
    if (keep !== undefined) this.#passing.set(key, now + keep)
    return this.#version
  }

  /** Drops expired records, up to the first one in the order of the writes that has not expired. */
  #drop(now: number): void {
    for (const [key, until] of this.#passing) {
      if (until > now) return
      this.#passing.delete(key)
      this.#records.delete(key)
    }
  }
}
