import { InvalidArgumentError, shown, UnavailableError } from '../errors.js'

/**
 * A value as the JSON text that engines keep.
 * @throws InvalidArgumentError for what JSON can't hold: undefined, functions, bigints, circles.
 */
export function encode(key: string, value: unknown): string {
  let text: string | undefined
  let cause: unknown
  try {
    // JSON.stringify gives undefined for undefined, functions and symbols, despite its type.
    text = JSON.stringify(value)
  } catch (error) {
    cause = error
  }
  if (text === undefined) {
    throw new InvalidArgumentError(
      `the value of ${shown(key)} must be representable in JSON, not ${shown(value)}`,
      { key, cause },
    )
  }
  return text
}

/**
 * The value of a JSON text, a fresh one at each call; undefined for an absent key.
 * @throws UnavailableError when another program has put something else there.
 */
export function decode(key: string, text: string | undefined): unknown {
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new UnavailableError(`can't read the value of ${key}: it is not valid JSON`, { key, cause })
  }
}
