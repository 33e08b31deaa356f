import type { Counts, Update } from './history.js'

/**
 * A resource outside Signalbox with two registers for each counter. One refuses tokens that are smaller than the
 * greatest it has seen; the other accepts all writes.
 */
export class Resource {
  readonly #counts = new Map<string, Counts>()
  readonly #tokens = new Map<string, bigint>()

  /**
   * Reads both registers. @param token counts as seen from now on, because a later holder builds on the values it
   * reads.
   */
  read(key: string, token: string | undefined): Counts {
    if (token !== undefined && BigInt(token) > this.#seen(key)) this.#tokens.set(key, BigInt(token))
    return this.#found(key)
  }

  /**
   * Writes one more than was read, unless a register refuses. Returns an update for each register; without a token only
   * for the unfenced one.
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

  /** Returns the current values of the registers, by key. */
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
