/** Checks one field of an incoming message: gives its value, or the reason why it is refused. */
export type Field<Value> = (value: unknown) => { readonly value: Value } | { readonly refused: string }

/** The longest name of a train or location and the longest message id, in characters. */
const LONGEST_NAME = 200

/**
 * Control characters spoil keys and logs; a lone surrogate turns into another text on its way through UTF-8. What is
 * not UTF-8 was read as U+FFFD, so two different names could become the same.
 */
const UNFIT = /[\p{Cc}\p{Cs}\uFFFD]/u

/** A name: some text of at most 200 characters, without control characters. */
export const name: Field<string> = value => {
  if (value === undefined) return { refused: 'is missing' }
  if (typeof value !== 'string') return { refused: `must be a string, got ${kindOf(value)}` }
  if (value === '') return { refused: 'must not be empty' }
  if (value.length > LONGEST_NAME) {
    return { refused: `must have at most ${LONGEST_NAME} characters, got ${value.length}` }
  }
  if (UNFIT.test(value)) return { refused: 'must not contain control characters or broken ones' }
  return { value }
}

/** Names what a value is, for a reason that is shown to users. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'string') return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return value === undefined ? 'nothing' : typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
