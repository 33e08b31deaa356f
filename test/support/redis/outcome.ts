import type { SignalboxError } from '../../../src/base/errors.js'

/** Returns the code of the error with which a promise rejects, or undefined if it fulfils. */
export async function codeOf(ending: Promise<unknown>): Promise<string | undefined> {
  return ending.then(
    () => undefined,
    (error: unknown) => (error as SignalboxError).code,
  )
}

/** Returns the error with which a promise rejects, as text, or undefined if it fulfils. */
export async function complaintOf(ending: Promise<unknown>): Promise<string | undefined> {
  return ending.then(
    () => undefined,
    (error: unknown) => `${(error as SignalboxError).code}: ${(error as Error).message}`,
  )
}
