import type { Grant } from 'signalbox'
import { pause } from './time.js'

/** A section that a lock protects. Counts the holders that are inside at the same time, and notes their order. */
export class Section {
  /** Maximum weight that was inside at the same time. */
  most = 0
  /** The tokens of the holders, in the order of entering. */
  readonly tokens: bigint[] = []
  #inside = 0

  /**
   * Stays inside for a moment.
   * @param stay milliseconds
   * @throws LostError if the grant is not held all that time
   */
  async visit(grant: Grant, weight = 1, stay = 1): Promise<void> {
    grant.assertHeld()
    this.tokens.push(grant.token)
    this.#inside += weight
    this.most = Math.max(this.most, this.#inside)
    try {
      await pause(stay)
      grant.assertHeld()
    } finally {
      this.#inside -= weight
    }
  }
}

/** Whether each number is greater than the one before it. */
export function rising(numbers: readonly bigint[]): boolean {
  return numbers.every((number, index) => index === 0 || number > numbers[index - 1]!)
}
