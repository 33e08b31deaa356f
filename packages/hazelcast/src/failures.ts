import { DamagedValueError, IndeterminateError, SignalboxError, UnavailableError } from 'signalbox'
import type { HazelcastPlace } from './hazelcast-url.js'

/** Another program has written to the entry of a store key. */
export class DamagedEntryError extends Error {
  readonly key: string

  constructor(key: string, cause: unknown) {
    super('the entry of a value can not be read', { cause })
    this.key = key
  }
}

/** It is unknown whether a change of an entry was applied. */
export class UnclearError extends Error {}

/** Returns the error for the caller of an operation that needs the entry of the sets that wait. */
export function roomFailureOf(error: unknown, place: HazelcastPlace): Error {
  if (!(error instanceof DamagedEntryError)) return failureOf(error, place, UnavailableError)
  return new UnavailableError(
    `can't read the entry "${error.key}" of ${place.map}.table: another program has written to it; delete it`,
    { engine: place.name, cause: error.cause },
  )
}

/** Returns the error for the caller of an operation. @param kind the class for errors of the client package. */
export function failureOf(
  error: unknown,
  { name, map }: HazelcastPlace,
  kind: typeof UnavailableError | typeof IndeterminateError,
): Error {
  if (error instanceof SignalboxError) return error
  const context = { engine: name, cause: error }
  if (error instanceof DamagedEntryError)
    return new DamagedValueError(
      `can't read the value of ${error.key}: another program has written to ${map}.values`,
      { ...context, key: error.key, cause: error.cause },
    )
  if (error instanceof UnclearError || kind === IndeterminateError)
    return new IndeterminateError(
      `timed out waiting for ${name}; the operation may have been applied`,
      context,
    )
  return new UnavailableError(`timed out waiting for ${name}; the operation was not applied`, context)
}
