import type { Mode } from '../setting.js'

/** Index of the word of the bell. */
export const BELL = 0
/** Index of the first word that a strategy may use. */
export const FIRST = 1

const WORDS = 64

/** Modes of a strategy that counts in shared memory. */
export const EVERYWHERE: readonly Mode[] = ['tasks', 'threads']

/** Allocates words that all threads share, initially 0. */
export function sharedWords(): SharedArrayBuffer {
  return new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT * WORDS)
}

/** Returns the shared words as one thread accesses them. */
export function words(shared: unknown): Int32Array {
  return new Int32Array(shared as SharedArrayBuffer)
}

/** Takes a permit from a word that counts permits. Returns whether there was one. */
export function takeOne(memory: Int32Array, word: number): boolean {
  let permits = Atomics.load(memory, word)
  while (permits > 0) {
    const found = Atomics.compareExchange(memory, word, permits, permits - 1)
    if (found === permits) return true
    permits = found
  }
  return false
}
