import type { Mode } from '../setting.js'

/** The word that a bell of several threads rings on. */
export const BELL = 0
/** The first word that a strategy may use. */
export const FIRST = 1

const WORDS = 64

/** Where a strategy may live that counts in shared memory. */
export const EVERYWHERE: readonly Mode[] = ['tasks', 'threads']

/** Some words that all threads share, 0 at first. */
export function sharedWords(): SharedArrayBuffer {
  return new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT * WORDS)
}

/** The same as seen by one thread. */
export function words(shared: unknown): Int32Array {
  return new Int32Array(shared as SharedArrayBuffer)
}

/** Takes a permit from a word that counts them, if there is one. */
export function takeOne(memory: Int32Array, word: number): boolean {
  let permits = Atomics.load(memory, word)
  while (permits > 0) {
    const found = Atomics.compareExchange(memory, word, permits, permits - 1)
    if (found === permits) return true
    permits = found
  }
  return false
}
