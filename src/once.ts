import { wallOf, type Clock } from './clock.js'
import type { Grant } from './core/grant.js'
import type { Lock } from './core/lock.js'
import type { LockOptions } from './core/lock-options.js'
import { isDuration, milliseconds } from './duration.js'
import { aboutTask, InvalidArgumentError, shown } from './errors.js'
import { checkOptions } from './options.js'
import type { Store, StoreEntry } from './store/store.js'

/** The periods between the times of a cron pattern. */
export interface CronSlots {
  /** A pattern as croner reads it, such as `'0 3 * * *'`. */
  cron: string
  /** The time zone of the pattern, such as `'Europe/Vienna'`; default `'UTC'`. */
  timezone?: string | undefined
}

/**
 * For what a task is done once. A duration such as `'1d'`: for each such period of the wall clock, counted in UTC from
 * 1970 on. A cron pattern: for each period from one of its times to the next. Any other text is itself the name of one
 * slot, such as that of a release; one that is meant as a duration or a pattern, such as `'1 day'`, is refused.
 */
export type Slots = string | CronSlots

/** What became of a task that is done once for a slot. */
export type Once<T> =
  /** It was done now. */
  | { readonly ran: true; readonly slot: string; readonly result: T }
  /** It had been done for this slot, or for a later one. */
  | { readonly ran: false; readonly slot: string; readonly result?: undefined }

/** One slot: a period of the wall clock, or whatever has this name. */
export interface Slot {
  readonly name: string
  /** When a period begins: milliseconds since 1970. A later one makes all earlier ones void. */
  readonly begins: number | undefined
}

/** A store key for each name, with the slot that was done last. */
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

const SECOND = 1000
/** What is meant as a duration or a pattern. As names these would be one slot for ever. */
const LIKE_DURATION = /^\d+(?:\.\d+)?\s*(?:ms|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?|w|weeks?)$/i
const LIKE_PATTERN = /^[\d*][\d*/,-]*(?:\s+(?:[\d*/,?#-]+|[a-z]{3}(?:[-,][a-z]{3})*)){4,5}$/i

/**
 * The slot at this moment.
 * @param option what messages call it.
 * @param now milliseconds since 1970.
 * @throws InvalidArgumentError
 */
export async function slotAt(option: string, slots: Slots, now: number): Promise<Slot> {
  if (typeof slots === 'object' && slots !== null) return period(slots.cron, await lastOf(slots, now))
  if (typeof slots !== 'string' || slots === '') {
    throw new InvalidArgumentError(`${option} takes a text or { cron }, not ${shown(slots)}`)
  }
  if (!isDuration(slots)) return { name: checkedName(option, slots), begins: undefined }
  const length = milliseconds(option, slots, { least: 1, most: Infinity })
  return period(slots, Math.floor(now / length) * length)
}

function checkedName(option: string, name: string): string {
  if (!LIKE_DURATION.test(name) && !LIKE_PATTERN.test(name)) return name
  throw new InvalidArgumentError(
    `${option} takes a duration like '1d' (ms, s, m, h, d), in code { cron }, or a name that is like neither, not ${shown(name)}`,
  )
}

function period(text: string, begins: number): Slot {
  return { name: `${text} from ${new Date(begins).toISOString()}`, begins }
}

/** The last time of a pattern, now included. */
async function lastOf(slots: CronSlots, now: number): Promise<number> {
  checkOptions(slots, ['cron', 'timezone'])
  const { cron, timezone = 'UTC' } = slots
  // The times of a pattern are whole seconds, and a time before the next second is asked for.
  const before = new Date(Math.floor(now / SECOND) * SECOND + SECOND)
  const { Cron } = await import('croner')
  let last: Date | undefined
  try {
    last = new Cron(cron, { timezone, paused: true }).previousRuns(1, before)[0]
  } catch (error) {
    throw new InvalidArgumentError(
      `cron takes a pattern and a time zone, not ${shown(cron)} in ${shown(timezone)}`,
      { cause: error },
    )
  }
  if (!last) throw new InvalidArgumentError(`the pattern ${shown(cron)} has no time in the past`)
  return last.getTime()
}

/** What was done last under a name. */
export class LastRun {
  readonly #store: Store
  readonly #key: string
  readonly #entry: StoreEntry<Slot> | undefined

  private constructor(store: Store, key: string, entry: StoreEntry<Slot> | undefined) {
    this.#store = store
    this.#key = key
    this.#entry = entry
  }

  /** Reads it. The lock of the name has to be held. @throws as `Store.get` */
  static async of(store: Store, name: string): Promise<LastRun> {
    return new LastRun(store, name, await store.get<Slot>(name))
  }

  /** Whether it was for this slot, or for a later one. */
  covers({ name, begins }: Slot): boolean {
    const last = this.#entry?.value
    if (!last) return false
    if (begins !== undefined && last.begins !== undefined) return last.begins >= begins
    return last.name === name
  }

  /**
   * Writes down that it was done for this slot, unless another process has written since.
   * @throws as `Store.compareAndSet`
   */
  async done(slot: Slot): Promise<void> {
    await this.#store.compareAndSet(this.#key, this.#entry?.version ?? 0, slot)
  }
}

/** What a task is done once with. */
export interface OnceParts {
  readonly lock: Lock
  readonly runs: Store
  readonly clock: Clock
}

/** See `Box.oncePer`. */
export async function oncePer<T>(
  { lock, runs, clock }: OnceParts,
  name: string,
  slots: Slots,
  task: (grant: Grant, slot: string) => T | Promise<T>,
  options: LockOptions | undefined,
): Promise<Once<T>> {
  const now = wallOf(clock)
  // What an error says of it: undefined while the task runs, whose errors are its own.
  let began: boolean | undefined = false
  try {
    if (typeof task !== 'function')
      throw new InvalidArgumentError(`oncePer takes a function, not ${shown(task)}`)
    // Refuses what is wrong before it waits.
    await slotAt('slots', slots, now())
    return await lock.run(async grant => {
      const slot = await slotAt('slots', slots, now())
      const last = await LastRun.of(runs, runsKey([name]))
      if (last.covers(slot)) return { ran: false, slot: slot.name }
      grant.assertHeld()
      began = undefined
      const result = await task(grant, slot.name)
      began = true
      await last.done(slot)
      began = undefined
      return { ran: true, slot: slot.name, result }
    }, options)
  } catch (error) {
    throw began === undefined ? error : aboutTask(error, began)
  }
}
