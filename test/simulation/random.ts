/** Random numbers that depend on their seeds alone (sfc32, seeded by FNV-1a). */
export class Random {
  #a: number
  #b: number
  #c: number
  #counter = 1

  constructor(...seeds: readonly (string | number)[]) {
    let hash = 0x811c9dc5
    for (const character of seeds.join('/')) hash = Math.imul(hash ^ character.charCodeAt(0), 0x01000193)
    this.#a = hash
    this.#b = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
    this.#c = Math.imul(hash ^ (hash >>> 13), 0x297a2d39)
    for (let round = 0; round < 12; round++) this.next()
  }

  /** Returns a number from 0 to below 1. */
  next(): number {
    const result = (this.#a + this.#b + this.#counter++) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + result) | 0
    return (result >>> 0) / 0x1_0000_0000
  }

  /** Returns an integer from 0 to below `limit`. */
  below(limit: number): number {
    return Math.floor(this.next() * limit)
  }

  between(least: number, most: number): number {
    return least + this.next() * (most - least)
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!
  }

  /** Returns some elements of the list, in random order. */
  sample<T>(list: readonly T[], count: number): T[] {
    const rest = [...list]
    return Array.from(
      { length: Math.min(count, rest.length) },
      () => rest.splice(this.below(rest.length), 1)[0]!,
    )
  }

  /** Returns a length with an exponential distribution. */
  exponential(mean: number): number {
    return -Math.log(1 - this.next()) * mean
  }
}
