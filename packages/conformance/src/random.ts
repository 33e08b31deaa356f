/** Random numbers that are the same for the same seed: the generator mulberry32. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed
  }

  /** Returns a number from 0 up to, but not including, 1. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** Returns a whole number from 0 up to, but not including, `end`. */
  below(end: number): number {
    return Math.floor(this.fraction() * end)
  }

  /** Returns `count` different items in random order. */
  some<T>(items: readonly T[], count: number): T[] {
    const left = [...items]
    return Array.from({ length: count }, () => left.splice(this.below(left.length), 1)[0]!)
  }
}
