import type { Counts, Update } from './history.js'

/**
 * A resource outside Signalbox, with two registers for each counter: one refuses tokens that are smaller than the
 * greatest it has seen, and one accepts everything.
 */
export class Resource {
  readonly #counts = new Map<string, Counts>()
  readonly #tokens = new Map<string, bigint>()

  /** @param token counts as seen from here on: a later holder builds on what it reads. */
  read(key: string, token: string | undefined): Counts {
    if (token !== undefined && BigInt(token) > this.#seen(key)) this.#tokens.set(key, BigInt(token))
    return this.#found(key)
  }

  /**
   * Writes one more than was read, where it may; returns both registers. Without a token only the unfenced one is
   * asked.
   */
  write(who: string, key: string, token: string | undefined, read: Counts, at: number): Update[] {
    const { fenced, unfenced } = this.#found(key)
    const common = { who, key, at, ...(token !== undefined && { token }) }
    const free: Update = { ...common, fenced: false, read: read.unfenced, found: unfenced, accepted: true }
    if (token === undefined) {
      this.#counts.set(key, { fenced, unfenced: read.unfenced + 1 })
      return [free]
    }
    const accepted = BigInt(token) >= this.#seen(key)
    if (accepted) this.#tokens.set(key, BigInt(token))
    this.#counts.set(key, { fenced: accepted ? read.fenced + 1 : fenced, unfenced: read.unfenced + 1 })
    return [free, { ...common, fenced: true, read: read.fenced, found: fenced, accepted }]
  }

  /** What is in the registers now, by key. */
  counts(): Record<string, Counts> {
    return Object.fromEntries(this.#counts)
  }

  #found(key: string): Counts {
    return this.#counts.get(key) ?? { fenced: 0, unfenced: 0 }
  }

  #seen(key: string): bigint {
    return this.#tokens.get(key) ?? 0n
  }
}
