import type { Grant } from './core/grant.js'
import type { Lock } from './core/lock.js'
import type { LockOptions } from './core/lock-options.js'
import { isDuration, milliseconds } from './duration.js'
import { aboutTask, InvalidArgumentError, shown, UnavailableError } from './errors.js'
import { checkKey, checkOptions, checkTimeZone } from './options.js'
import type { Store, StoreEntry } from './store/store.js'

/** The periods between the times of a cron pattern. */
export interface CronSlots {
  /** A pattern as croner reads it, such as `'0 3 * * *'`. */
  cron: string
  /** The time zone of the pattern, such as `'Europe/Vienna'`; default `'UTC'`. */
  timeZone?: string | undefined
}

/**
 * For what a task is done once. A duration such as `'1d'`: for each such period of the wall clock, counted in UTC from
 * 1970 on. A cron pattern: for each period from one of its times to the next. Any other text is itself the name of one
 * slot, such as that of a release or, as `'5'`, the number of a build: its task is done once, and not again later. A text
 * that is meant as something else, such as `'1 day'` or `'undefined'`, is refused.
 */
export type Slots = string | CronSlots

/** The outcome of a task that is done once for a slot. */
export type Once<T> =
  /** It was done now. */
  | { readonly ran: true; readonly slot: string; readonly result: T }
  /** It had been done for this slot, or for a later one. */
  | { readonly ran: false; readonly slot: string; readonly result?: undefined }

/** One slot: a period of the wall clock, or a name. */
interface Slot {
  readonly name: string
  /** When a period begins: milliseconds since 1970. */
  readonly begins?: number
}

/** What was done under a name: the last slot, and those before it, the latest first. */
interface DoneSlots extends Slot {
  readonly earlier: readonly Slot[]
}

/** A store key for each name. */
export const RUNS = 'signalbox-runs'

/**
 * The store key for what is done once under these locks. One lock has its own name as its key. A name that looks like
 * the list of several is written as a list, too, so that no two sets of locks have the same key.
 */
export function runsKey(locks: readonly string[]): string {
  const names = [...new Set(locks)].sort()
  const [only] = names
  return names.length === 1 && !only!.startsWith('[') ? only! : JSON.stringify(names)
}

/** How many slots of a name are remembered. */
const REMEMBERED = 100
/**
 * A slot that was done makes earlier ones void. But one that begins later than this was done by a wrong clock, and must
 * not keep others from being done for as long as that clock was ahead, in milliseconds.
 */
const MAX_AHEAD = 3_600_000
/**
 * A timer by a clock that is ahead of the engine's asks before its slot begins there. Within this the slot is meant
 * that is about to begin, in milliseconds.
 */
const MAX_EARLY = 60_000
const SECOND = 1000
const PERIOD_BOUNDS = { min: 1, max: 36_500 * 86_400_000 }

/** What is meant as a duration, a pattern or a missing value. As names these would be one slot for ever. */
const MISTAKEN: readonly RegExp[] = [
  /^\s|\s$|^@/,
  // What JavaScript writes for a value that is not a text.
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
 * The slot at this moment.
 * @param option what messages call it.
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

/** The last time of a pattern, now included. */
async function lastOf(slots: CronSlots, now: number): Promise<number> {
  checkOptions(slots, ['cron', 'timeZone'])
  const { cron, timeZone = 'UTC' } = slots
  checkTimeZone(timeZone)
  const { Cron, CronPattern } = await import('croner')
  // The times of a pattern are whole seconds, and a time before the next second is asked for.
  const before = new Date(Math.floor(now / SECOND) * SECOND + SECOND)
  let last: Date | undefined
  try {
    // Alone, Cron also takes a date.
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

/** Where it is kept for which slots a task was done, and the clocks by which slots begin. */
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
   * The run for the present slot. The locks with these names must be held.
   * @param option what messages call the slots.
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

/** A task at one slot. */
class Run {
  /** Whether it was done for this slot, or for a later one. */
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
   * Records that it was done, unless another process has recorded something since.
   * @throws as `Store.compareAndSet`
   */
  async done(): Promise<void> {
    const earlier = this.#before.slice(0, REMEMBERED - 1)
    await this.#store.compareAndSet(this.#key, this.#version, { ...this.#slot, earlier })
  }
}

function covers(done: Slot, slot: Slot, now: number): boolean {
  if (done.name === slot.name) return true
  const isPeriod = done.begins !== undefined && slot.begins !== undefined
  return isPeriod && done.begins >= slot.begins && done.begins <= now + MAX_AHEAD
}

/**
 * What a record says. An early build has written the last slot alone.
 * @throws UnavailableError for one that something else has written: the task may have been done.
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

/** What a task is done once with. */
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
  // What an error says of it: undefined while the task runs, whose errors are its own.
  let began: boolean | undefined = false
  try {
    if (typeof task !== 'function')
      throw new InvalidArgumentError(`the task of oncePer must be a function, not ${shown(task)}`)
    // Refuses what is wrong before it waits.
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
