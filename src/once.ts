import type { Grant } from './core/grant.js'
import type { Lock } from './core/lock.js'
import type { LockOptions } from './core/lock-options.js'
import { isDuration, milliseconds } from './duration.js'
import { aboutTask, InvalidArgumentError, shown, UnavailableError } from './errors.js'
import { checkKey, checkOptions, checkTimeZone } from './options.js'
import type { Store, StoreEntry } from './store/store.js'

/** The periods between the times of a cron pattern. */
export interface CronSlots {
  /** A pattern of the package croner, such as `'0 3 * * *'`. */
  cron: string
  /** The time zone of the pattern, such as `'Europe/Vienna'`; default `'UTC'`. */
  timeZone?: string | undefined
}

/**
 * The slots for each of which a task is done once. A duration such as `'1d'`: the periods of this length of the wall
 * clock, in UTC from 1970 on. A cron pattern: the periods from each of its times to the next. Any other string names
 * one slot, such as a release, or a build by its number `'5'`: the task is done once for this name, ever. Strings that
 * look like a mistake, such as `'1 day'` or `'undefined'`, are refused.
 */
export type Slots = string | CronSlots

/** The outcome of a task that is done once for a slot. */
export type Once<T> =
  /** This call ran the task. */
  | { readonly ran: true; readonly slot: string; readonly result: T }
  /** The task was already done for this slot, or for a later one. */
  | { readonly ran: false; readonly slot: string; readonly result?: undefined }

/** One slot: a period of the wall clock, or a name. */
interface Slot {
  readonly name: string
  /** When a period begins: milliseconds since 1970. */
  readonly begins?: number
}

/** The slots of a name whose tasks are done: the last one, and those before it, the latest first. */
interface DoneSlots extends Slot {
  readonly earlier: readonly Slot[]
}

/** The store of these records, with a key for each name. */
export const RUNS = 'signalbox-runs'

/**
 * The store key of the record for these locks. It is the name of a single lock, and a list of several names. A single
 * name that looks like a list is written as a list, too, so that no two sets of locks have the same key.
 */
export function runsKey(locks: readonly string[]): string {
  const names = [...new Set(locks)].sort()
  const [only] = names
  return names.length === 1 && !only!.startsWith('[') ? only! : JSON.stringify(names)
}

/** Number of slots of a name that are kept. */
const MAX_SLOTS = 100
/**
 * A task that is done for a slot is done for earlier slots, too, unless that slot begins later than this, in
 * milliseconds from now. Then a wrong clock has done it, and must not block the slots until then.
 */
const MAX_AHEAD = 3_600_000
/**
 * By how much the clock of this process may be ahead of the engine's, in milliseconds. Its timers then call before the
 * slot begins by the engine's clock, and mean the slot that is about to begin.
 */
const MAX_EARLY = 60_000
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
export async function slotAt(option: string, slots: Slots, now: number): Promise<Slot> {
  if (typeof slots === 'object' && slots !== null) return period(slots.cron, await lastOf(slots, now))
  if (typeof slots !== 'string' || slots === '') {
    throw new InvalidArgumentError(`${option} must be a string or { cron }, not ${shown(slots)}`)
  }
  if (!isDuration(slots)) return { name: checkedName(option, slots) }
  const length = milliseconds(option, slots, PERIOD_BOUNDS)
  return period(slots, Math.floor(now / length) * length)
}

function checkedName(option: string, name: string): string {
  checkKey(option, name)
  if (!MISTAKEN.some(pattern => pattern.test(name))) return name
  throw new InvalidArgumentError(
    `${option} must be a duration like '1d' (ms, s, m, h, d), { cron } in code, or a name that looks like neither, not ${shown(name)}`,
  )
}

function period(text: string, begins: number): Slot {
  return { name: `${text} from ${new Date(begins).toISOString()}`, begins }
}

/** The last time of a pattern that is not after `now`. */
async function lastOf(slots: CronSlots, now: number): Promise<number> {
  checkOptions(slots, ['cron', 'timeZone'])
  const { cron, timeZone = 'UTC' } = slots
  checkTimeZone(timeZone)
  const { Cron, CronPattern } = await import('croner')
  // The times of a pattern are whole seconds, and `previousRuns` returns times before the given one.
  const before = new Date(Math.floor(now / SECOND) * SECOND + SECOND)
  let last: Date | undefined
  try {
    // Checks the pattern, because Cron would also accept a date.
    new CronPattern(cron)
    last = new Cron(cron, { timezone: timeZone, paused: true }).previousRuns(1, before)[0]
  } catch (error) {
    throw new InvalidArgumentError(`cron must be a pattern like '0 3 * * *', not ${shown(cron)}`, {
      cause: error,
    })
  }
  if (!last) throw new InvalidArgumentError(`cron must have a time in the past, unlike ${shown(cron)}`)
  return last.getTime()
}

/** Records for which slots tasks are done, and determines the current slot. */
export class Runs {
  readonly #store: Store
  readonly #shared: () => Promise<number>
  readonly #own: () => number

  /**
   * @param shared the wall clock that all processes share: milliseconds since 1970.
   * @param own the wall clock of this process.
   */
  constructor(store: Store, shared: () => Promise<number>, own: () => number) {
    this.#store = store
    this.#shared = shared
    this.#own = own
  }

  /**
   * Returns the run of the current slot. The caller must hold the locks of these names.
   * @param option names the slots in messages.
   * @throws InvalidArgumentError, and as `Store.get`
   */
  async present(names: readonly string[], option: string, slots: Slots): Promise<Run> {
    const key = runsKey(names)
    const [shared, entry] = await Promise.all([this.#shared(), this.#store.get<DoneSlots>(key)])
    const own = this.#own()
    const now = own > shared && own <= shared + MAX_EARLY ? own : shared
    return new Run(this.#store, key, entry, await slotAt(option, slots, now), now)
  }
}

/** A run of a task for one slot. */
class Run {
  /** Whether the task is already done for this slot, or for a later one. */
  readonly isDone: boolean
  readonly slot: string
  readonly #store: Store
  readonly #key: string
  readonly #version: number
  readonly #slot: Slot
  readonly #before: readonly Slot[]

  constructor(store: Store, key: string, entry: StoreEntry<DoneSlots> | undefined, slot: Slot, now: number) {
    this.#store = store
    this.#key = key
    this.#version = entry?.version ?? 0
    this.#slot = slot
    this.slot = slot.name
    this.#before = slotsOf(key, entry?.value)
    this.isDone = this.#before.some(done => covers(done, slot, now))
  }

  /**
   * Records that the task is done, unless another process has changed the record.
   * @throws as `Store.compareAndSet`
   */
  async done(): Promise<void> {
    const earlier = this.#before.slice(0, MAX_SLOTS - 1)
    await this.#store.compareAndSet(this.#key, this.#version, { ...this.#slot, earlier })
  }
}

function covers(done: Slot, slot: Slot, now: number): boolean {
  if (done.name === slot.name) return true
  const isPeriod = done.begins !== undefined && slot.begins !== undefined
  return isPeriod && done.begins >= slot.begins && done.begins <= now + MAX_AHEAD
}

/**
 * Returns the slots of a record. Early builds wrote only the last slot.
 * @throws UnavailableError if another program has written the record: the task may be done.
 */
function slotsOf(key: string, done: unknown): readonly Slot[] {
  if (done === undefined) return []
  if (isSlot(done)) {
    const { earlier = [], ...last } = done as Slot & { readonly earlier?: unknown }
    if (Array.isArray(earlier) && earlier.every(isSlot)) return [last, ...earlier]
  }
  throw new UnavailableError(
    `can't read which slots were done: the value of ${shown(key)} in the store ${RUNS} is not a record of oncePer; ` +
      'delete it to start again, which can do a slot a second time',
    { key },
  )
}

function isSlot(value: unknown): value is Slot {
  if (typeof value !== 'object' || value === null) return false
  const { name, begins } = value as { readonly [key in keyof Slot]: unknown }
  return typeof name === 'string' && (begins === undefined || typeof begins === 'number')
}

/** The lock and the record of `oncePer`. */
export interface OnceParts {
  readonly lock: Lock
  readonly runs: Runs
}

/** See `Box.oncePer`. */
export async function oncePer<T>(
  { lock, runs }: OnceParts,
  name: string,
  slots: Slots,
  task: (grant: Grant, slot: string) => T | Promise<T>,
  options: LockOptions | undefined,
): Promise<Once<T>> {
  // The `taskBegan` of an error; undefined for the errors of the task itself.
  let began: boolean | undefined = false
  try {
    if (typeof task !== 'function')
      throw new InvalidArgumentError(`the task of oncePer must be a function, not ${shown(task)}`)
    // Checks the slots before the wait for the lock.
    await slotAt('slots', slots, Date.now())
    return await lock.run(async grant => {
      const run = await runs.present([name], 'slots', slots)
      const { slot } = run
      if (run.isDone) return { ran: false, slot }
      grant.assertHeld()
      began = undefined
      const result = await task(grant, slot)
      began = true
      await run.done()
      began = undefined
      return { ran: true, slot, result }
    }, options)
  } catch (error) {
    throw began === undefined ? error : aboutTask(error, began)
  }
}
