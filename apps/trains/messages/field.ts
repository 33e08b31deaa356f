/** Checks a field of an incoming message. Returns its value, or the reason for rejecting it. */
export type Field<Value> = (value: unknown) => { readonly value: Value } | { readonly refused: string }

/** Maximum length of names and message IDs, in characters. */
const MAX_NAME = 200

/**
 * Characters that a name must not contain. Control characters corrupt keys and logs. A lone surrogate changes when it
 * is encoded as UTF-8. Invalid UTF-8 is read as U+FFFD, so two different names could become the same.
 */
const FORBIDDEN = /[\p{Cc}\p{Cs}\uFFFD]/u

/** A name: a string of 1 to 200 characters without control characters and invalid ones. */
export const name: Field<string> = value => {
  if (value === undefined) return { refused: 'is missing' }
  if (typeof value !== 'string') return { refused: `must be a string, got ${kindOf(value)}` }
  if (value === '') return { refused: 'must not be empty' }
  if (value.length > MAX_NAME) {
    return { refused: `must have at most ${MAX_NAME} characters, got ${value.length}` }
  }
  if (FORBIDDEN.test(value)) return { refused: 'must not contain control characters or invalid ones' }
  return { value }
}

/** Describes a value for an error message. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'string') return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return value === undefined ? 'nothing' : typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
