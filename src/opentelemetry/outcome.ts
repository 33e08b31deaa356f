import { SignalboxError } from '../errors.js'

/** How something ended, for an attribute: one word or two for each class of errors. */
export function outcomeOf(error: unknown): string {
  return error instanceof SignalboxError ? error.code.toLowerCase().replace('_', ' ') : 'failed'
}
