import type { Grant } from 'signalbox'
import { pause } from './time.js'

/** What a lock protects: it counts the holders that are inside at the same time, and notes their order. */
export class Section {
  /** The greatest weight that was ever inside together. */
  most = 0
  /** In the order of entering. */
  readonly tokens: bigint[] = []
  #inside = 0

  /** Stays inside for a moment; throws when the grant does not hold all that time. */
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
