import { InvalidArgumentError } from 'signalbox'
import type { Message } from '../messages/message.js'

export interface TimedMessage {
  readonly message: Message
  /** Seconds since midnight of the first day; undefined if the input has no times. */
  readonly time?: number | undefined
}

/** A point on the earth, in degrees. */
export interface Place {
  readonly latitude: number
  readonly longitude: number
}

export interface Geography {
  /** The distinct sequences of locations at which trips stop. */
  readonly patterns: readonly (readonly string[])[]
  /** The station of a location; the location itself if it has none. */
  readonly stationOf: (location: string) => string
  /** The place of a location or station; undefined if unknown. */
  readonly placeOf: (location: string) => Place | undefined
}

/** A source of messages. The same input always yields the same messages in the same order. */
export interface MessageSource {
  /** A short name of the input, to show. */
  readonly name: string
  /** Describes the input and how it is read. A resumed run must have the same description. */
  readonly description: string
  /** Maximum number of messages; undefined if unknown before they are read. */
  readonly total: number | undefined
  readonly days: number | undefined
  /** The names of locations, if the input has them. */
  readonly locationNames: ReadonlyMap<string, string>
  readonly geography: Geography | undefined
  /** Yields the messages in order, in batches. Can be called only once. */
  batches(): AsyncIterable<readonly TimedMessage[]>
}

/** Thrown if the input or an option is unusable. For example, a file or column is missing, or a port is in use. */
export class InputError extends InvalidArgumentError {
  override readonly name = 'InputError'
}
