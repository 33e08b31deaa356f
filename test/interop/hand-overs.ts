import { inOrder } from '../../apps/chaos/check/intervals.js'
import type { Stay } from './client.js'

/** Returns how often a holder of one kind followed a holder of another kind, by `one > other`. */
export function handOvers(stays: readonly Stay[]): Map<string, number> {
  const counts = new Map<string, number>()
  let before: Stay | undefined
  for (const stay of inOrder(stays)) {
    if (before && before.kind !== stay.kind) {
      const pair = `${before.kind} > ${stay.kind}`
      counts.set(pair, (counts.get(pair) ?? 0) + 1)
    }
    before = stay
  }
  return counts
}
