import type { Message } from '../messages/message.js'

/** A message and, where its input has a timetable, when it happens. */
export interface TimedMessage {
  readonly message: Message
  /** Seconds since midnight of the first day; undefined where the input has no times. */
  readonly time?: number | undefined
}

/** A point of the earth, in degrees. */
export interface Place {
  readonly latitude: number
  readonly longitude: number
}

/** Where the locations of a timetable are, and how trains go from one to the other. */
export interface Geography {
  /** The locations that trips stop at, in order, each order once. */
  readonly patterns: readonly (readonly string[])[]
  /** The station that a location belongs to: itself where it belongs to none. */
  readonly stationOf: (location: string) => string
  /** Where a location or station is; undefined where that is not known. */
  readonly placeOf: (location: string) => Place | undefined
}

/** Where messages come from. The same input gives the same messages in the same order, always. */
export interface MessageSource {
  /** What is read and how, in words: also shows whether a resumed run reads what the interrupted one read. */
  readonly description: string
  /** How many messages there will be; undefined where that is not known before they are read. */
  readonly total: number | undefined
  /** How often the timetable is repeated; undefined where the input has no days. */
  readonly days: number | undefined
  /** The names of locations, for people, as far as the input has them. */
  readonly locationNames: ReadonlyMap<string, string>
  /** Undefined where the input does not say. */
  readonly geography: Geography | undefined
  /** The messages in order, some at a time, read as they are asked for. To be called once. */
  batches(): AsyncIterable<readonly TimedMessage[]>
}

/** An input as a whole can't be used: a file or a column is missing, or an option does not fit it. */
export class InputError extends Error {
  override readonly name = 'InputError'
}
