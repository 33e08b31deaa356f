import { expect } from 'vitest'

/** Matches an error with this code and, in its message, this text. */
export function failure(code: string, text: string | RegExp): object {
  const message: unknown =
    typeof text === 'string' ? expect.stringContaining(text) : expect.stringMatching(text)
  return { code, message }
}
