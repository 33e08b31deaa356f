import type { SignalboxError } from '../../../src/base/errors.js'

/** The code of the error that something ends with; undefined when it ends well. */
export async function codeOf(ending: Promise<unknown>): Promise<string | undefined> {
  return ending.then(
    () => undefined,
    (error: unknown) => (error as SignalboxError).code,
  )
}

/** The error that something ends with, as text; undefined when it ends well. */
export async function complaintOf(ending: Promise<unknown>): Promise<string | undefined> {
  return ending.then(
    () => undefined,
    (error: unknown) => `${(error as SignalboxError).code}: ${(error as Error).message}`,
  )
}
