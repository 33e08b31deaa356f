/**
 * Words of shared memory that are written atomically. Of their 64 bits, seven are a tag that identifies the lap of a
 * ring or a period, and 56 are a number. The sign bit is not used.
 */
const NUMBER_BITS = 56n
const NUMBER_MASK = (1n << NUMBER_BITS) - 1n
/** Number of tags before they repeat. */
export const TAGS = 128

/** The places of the halves of a word, in units of 32 bits. */
const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1
export const LOW = LITTLE_ENDIAN ? 0 : 1
export const HIGH = 1 - LOW
/** Number of bits of the number in the high half, below the tag. */
export const HIGH_NUMBER_BITS = 24
export const HIGH_NUMBER_MASK = 2 ** HIGH_NUMBER_BITS - 1

/** A word and its halves, for composing a value. */
const word = new BigInt64Array(1)
const wordHalves = new Int32Array(word.buffer)

/** Composes a word. @param tag less than `TAGS`. @param number an integer, 0 or more. */
export function taggedWord(tag: number, number: number): bigint {
  // Composed from halves, because each operation on bigints would allocate one.
  wordHalves[LOW] = number % 2 ** 32
  wordHalves[HIGH] = (tag << HIGH_NUMBER_BITS) | Math.floor(number / 2 ** 32)
  return word[0]!
}

export function tagOf(tagged: bigint): number {
  return Number(tagged >> NUMBER_BITS)
}

export function numberOf(tagged: bigint): number {
  return Number(tagged & NUMBER_MASK)
}
