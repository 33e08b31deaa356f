import { InvalidArgumentError } from 'signalbox'
import type { Message } from '../messages/message.js'

/** A message and, for a timetable, when it happens. */
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

/** The places of a timetable's locations, and the routes between them. */
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
  /** What a person calls the input. */
  readonly name: string
  /** Describes the input and how it is read. A resumed run must have the same description. */
  readonly description: string
  /** Number of messages; undefined if unknown before they are read. */
  readonly total: number | undefined
  /** How many times the timetable is run; undefined if the input has no days. */
  readonly days: number | undefined
  /** The names of locations, if the input has them. */
  readonly locationNames: ReadonlyMap<string, string>
  /** Undefined if the input does not say. */
  readonly geography: Geography | undefined
  /** Reads the messages in order, in batches. May be called once. */
  batches(): AsyncIterable<readonly TimedMessage[]>
}

/** The whole input is unusable: a file or column is missing, or an option does not fit. */
export class InputError extends InvalidArgumentError {
  override readonly name = 'InputError'
}
