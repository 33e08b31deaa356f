import { Cron, CronPattern } from 'croner'
import { isDuration, milliseconds, type Duration } from './base/duration.js'
import { InvalidArgumentError, shown } from './base/errors.js'
import { failureText } from './base/failure-text.js'
import { checkKey, checkOptions, checkTimeZone } from './base/options.js'

/** The times of a cron pattern. */
export interface CronSlots {
  /** A pattern of the package croner, such as `'0 3 * * *'`. A step after a number counts up: `0/5` is `0-59/5`. */
  cron: string
  /** The time zone of the pattern, such as `'Europe/Vienna'`; default `'UTC'`. */
  timeZone?: string | undefined
}

/** The times at which periods of one length begin. */
export interface EverySlots {
  /** The length, such as `'15m'`. The periods are those of the wall clock, counted in UTC from 1970 on. */
  every: Duration
}

/** The times at which slots begin. A slot ends when the next one begins. */
export type Times = CronSlots | EverySlots

/**
 * The slots for each of which a task is done once: times, or text as on a command line. A duration such as `'1d'` means
 * `{ every: '1d' }`. Any other text names one slot, such as a release, or a build by its number `'5'`: the task is done
 * once for this name, ever. Texts that look like a mistake, such as `'1 day'` or `'undefined'`, are refused.
 */
export type Slots = string | Times

/** A slot that begins at a time. */
export interface Slot {
  /** Text that only this slot has, such as `'0 3 * * * from 2026-03-02T03:00:00.000Z'`. */
  readonly name: string
  /** When it begins. */
  readonly at: Date
}

/** A slot that has only a name. */
export interface NamedSlot {
  readonly name: string
  readonly at?: undefined
}

/** The slot that a task gets for slots of this type: one without a time only if they may be text. */
export type SlotOf<S extends Slots> = S extends Times ? Slot : Slot | NamedSlot

const SECOND = 1000
const PERIOD_BOUNDS = { min: 1, max: 36_500 * 86_400_000 }

/** Strings that were meant as a duration, a pattern or a missing value. As a name, each would be one slot forever. */
const MISTAKEN: readonly RegExp[] = [
  /^\s|\s$|^@/,
  // JavaScript values that were converted to strings.
  /^(?:undefined|null|NaN|-?Infinity|true|false|Invalid Date|\[object .*\])$/,
  /^(?:[+-]?\d+(?:[.,]\d+)?\s*(?:ms|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?|months?|y|years?)\s*)+$/i,
  // ISO 8601
  /^[+-]?P(?:\d+(?:[.,]\d+)?[YMWD])*(?:T(?:\d+(?:[.,]\d+)?[HMS])+)?$/i,
  /^(?:each|every)\s/i,
  /^(?:minute|hour|dai|night|week|fortnight|month|quarter|year|annual)ly$/i,
  // A cron pattern
  /^[\d*?][\d*?/,-]*(?:\s+(?:[\d*?/,#LW+-]|sun|mon|tue|wed|thu|fri|sat|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)+){4,6}$/i,
]

/**
 * Returns the current slot.
 * @param option names the slots in messages.
 * @param now milliseconds since 1970.
 * @throws InvalidArgumentError
 */
export function slotAt(option: string, slots: Slots, now: number): Slot | NamedSlot {
  if (slots === '' || (typeof slots !== 'string' && (typeof slots !== 'object' || slots === null)))
    throw new InvalidArgumentError(`${option} must be a text, { cron } or { every }, not ${shown(slots)}`)
  if (typeof slots === 'string' && !isDuration(slots)) return { name: checkedName(option, slots) }
  const slot = (typeof slots === 'string' ? periods(option, slots) : timetable(option, slots)).latest(now)
  if (slot) return slot
  const { cron } = slots as CronSlots
  throw new InvalidArgumentError(`cron must have a time in the past, unlike ${shown(cron)}`)
}

/** The slots that begin at given times. Times are in milliseconds since 1970. */
export interface Timetable {
  /** Returns the last slot that does not begin after this time; undefined if there is none. */
  latest(now: number): Slot | undefined
  /** Returns the first slot that begins after this time; undefined if there is none. */
  after(now: number): Slot | undefined
}

/**
 * Returns the slots that begin at these times.
 * @param option names the times in messages.
 * @throws InvalidArgumentError
 */
export function timetable(option: string, times: Times): Timetable {
  if (typeof times !== 'object' || times === null)
    throw new InvalidArgumentError(`${option} must be { cron } or { every }, not ${shown(times)}`)
  const { cron, every } = times as Partial<CronSlots & EverySlots>
  if (cron !== undefined && every !== undefined)
    throw new InvalidArgumentError(`${option} must have either cron or every, not both: remove one of them`)
  if (cron === undefined && every === undefined)
    throw new InvalidArgumentError(`${option} must be like { cron: '0 3 * * *' } or { every: '1d' }`)
  if (!('every' in times)) return matches(times)
  checkOptions(times, ['every'])
  return periods('every', times.every)
}

function checkedName(option: string, name: string): string {
  checkKey(option, name)
  if (!MISTAKEN.some(pattern => pattern.test(name))) return name
  throw new InvalidArgumentError(
    `${option} must be a duration like '1d' (ms, s, m, h, d), { cron } in code, or a name that looks like neither, not ${shown(name)}`,
  )
}

function slotOf(text: string, at: Date): Slot {
  return { name: `${text} from ${at.toISOString()}`, at }
}

function periods(option: string, every: unknown): Timetable {
  const length = Math.round(milliseconds(option, every, PERIOD_BOUNDS))
  const text = typeof every === 'string' ? every : `${length}ms`
  const period = (index: number): Slot => slotOf(text, new Date(index * length))
  return {
    latest: now => period(Math.floor(now / length)),
    after: now => period(Math.floor(now / length) + 1),
  }
}

function matches(slots: CronSlots): Timetable {
  checkOptions(slots, ['cron', 'timeZone'])
  const { cron, timeZone = 'UTC' } = slots
  checkTimeZone(timeZone)
  let pattern: Cron
  try {
    // Checks the pattern, because Cron would also accept a date.
    new CronPattern(cron, undefined, { sloppyRanges: true })
    // 0/5 is 0-59/5, as in @nestjs/schedule and Quartz.
    pattern = new Cron(cron, { timezone: timeZone, paused: true, sloppyRanges: true })
  } catch (error) {
    throw new InvalidArgumentError(
      `cron must be a pattern like '0 3 * * *', not ${shown(cron)}: ${failureText(error)}`,
      { cause: error },
    )
  }
  const match = (time: Date | null | undefined): Slot | undefined => (time ? slotOf(cron, time) : undefined)
  return {
    // The times of a pattern are whole seconds, and `previousRuns` returns times before the given one.
    latest: now => match(pattern.previousRuns(1, new Date(Math.floor(now / SECOND) * SECOND + SECOND))[0]),
    after: now => match(pattern.nextRun(new Date(now))),
  }
}
