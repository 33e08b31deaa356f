import { NotSentError } from './errors.js'

/** Carries out a step as often as it was certainly not carried out: a suspension only takes time. */
export async function insist<T>(step: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await step()
    } catch (error) {
      if (!(error instanceof NotSentError)) throw error
    }
  }
}
