import { DamagedValueError, InvalidArgumentError, shown } from '../base/errors.js'

/** A value with its version. */
export interface StoreEntry<T = unknown> {
  readonly value: T
  /** The version of its last change. It is never used again, even after a deletion. */
  readonly version: number
}

/** @throws InvalidArgumentError for values that JSON can't represent: undefined, functions, bigints, cycles. */
export function encode(key: string, value: unknown): string {
  let text: string | undefined
  let cause: unknown
  try {
    // JSON.stringify returns undefined for undefined, functions and symbols, despite its type.
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
 * Decodes a value from JSON text; undefined for an absent key.
 * @param version of the value, for the error; negative if the engine can't read it, either
 * @throws DamagedValueError when the text is no JSON
 */
export function decode(key: string, text: string | undefined, version?: number): unknown {
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch (cause) {
    const known = version !== undefined && version >= 0 ? version : undefined
    throw new DamagedValueError(`can't read the value of ${key}: it is not valid JSON`, { key, cause }, known)
  }
}
