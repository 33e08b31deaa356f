import { DamagedValueError, shown } from './base/errors.js'
import { slotAt, type NamedSlot, type Slot, type Slots } from './slots.js'
import type { StoreEntry } from './store/value.js'
import type { Store } from './store/store.js'

interface StoredSlot {
  readonly name: string
  /** When it begins: milliseconds since 1970. Undefined if it has only a name. */
  readonly begins?: number
}

/** The slots of a name whose tasks are done: the last one, and those before it, the latest first. */
interface DoneSlots extends StoredSlot {
  readonly earlier: readonly StoredSlot[]
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

const MAX_SLOTS = 100
/**
 * A task that is done for a slot is done for earlier slots, too, unless that slot begins later than this, in
 * milliseconds from now. Then a wrong clock has done it, and must not block the slots until then.
 */
export const MAX_AHEAD = 3_600_000
/**
 * By how much the clock of this process may be ahead of the engine's, in milliseconds. Its timers then call before the
 * slot begins by the engine's clock, and mean the slot that is about to begin.
 */
const MAX_EARLY = 60_000

/** Records for which slots tasks are done. */
export class Runs {
  readonly #store: Store

  /**
   * @param now returns the time of the clock that all processes share: milliseconds since 1970. Rejects as `Store.get`.
   * @param ownNow returns the time of the clock of this process: milliseconds since 1970.
   */
  constructor(
    store: Store,
    readonly now: () => Promise<number>,
    readonly ownNow: () => number,
  ) {
    this.#store = store
  }

  /**
   * Returns the run of the current slot, for a caller with timers of its own. It must hold the locks of these names.
   * @param option names the slots in messages.
   * @throws InvalidArgumentError, and as `Store.get`
   */
  async present(names: readonly string[], option: string, slots: Slots): Promise<Run> {
    const [shared, entry] = await Promise.all([this.now(), this.#read(names)])
    const own = this.ownNow()
    const now = own > shared && own <= shared + MAX_EARLY ? own : shared
    return new Run(this.#store, runsKey(names), entry, slotAt(option, slots, now), now)
  }

  /**
   * Returns the run of a slot. The caller must hold the locks of these names.
   * @param now the time of the clock that all processes share.
   * @throws as `Store.get`
   */
  async of(names: readonly string[], slot: Slot, now: number): Promise<Run> {
    return new Run(this.#store, runsKey(names), await this.#read(names), slot, now)
  }

  /**
   * Checks that the record can be read.
   * @throws as `Store.get`
   */
  async check(names: readonly string[]): Promise<void> {
    slotsOf(runsKey(names), (await this.#read(names))?.value)
  }

  #read(names: readonly string[]): Promise<StoreEntry<DoneSlots> | undefined> {
    return this.#store.get(runsKey(names))
  }
}

class Run {
  /** Whether the task is already done for this slot, or for a later one. */
  readonly isDone: boolean
  readonly slot: Slot | NamedSlot
  readonly #store: Store
  readonly #key: string
  readonly #version: number
  readonly #before: readonly StoredSlot[]

  constructor(
    store: Store,
    key: string,
    entry: StoreEntry<DoneSlots> | undefined,
    slot: Slot | NamedSlot,
    now: number,
  ) {
    this.#store = store
    this.#key = key
    this.#version = entry?.version ?? 0
    this.slot = slot
    this.#before = slotsOf(key, entry?.value)
    this.isDone = this.#before.some(done => covers(done, stored(slot), now))
  }

  /**
   * Records that the task is done, unless another process has changed the record.
   * @param skipped the last slot that began during the run, if no task shall run for it.
   * @throws as `Store.compareAndSet`
   */
  async done(skipped?: Slot): Promise<void> {
    const own = stored(this.slot)
    const [last, ...earlier] =
      skipped && skipped.name !== own.name ? [stored(skipped), own, ...this.#before] : [own, ...this.#before]
    await this.#store.compareAndSet(this.#key, this.#version, {
      ...last,
      earlier: earlier.slice(0, MAX_SLOTS - 1),
    })
  }
}

function stored({ name, at }: Slot | NamedSlot): StoredSlot {
  return at ? { name, begins: at.getTime() } : { name }
}

function covers(done: StoredSlot, slot: StoredSlot, now: number): boolean {
  if (done.name === slot.name) return true
  const isPeriod = done.begins !== undefined && slot.begins !== undefined
  return isPeriod && done.begins >= slot.begins && done.begins <= now + MAX_AHEAD
}

/**
 * Returns the slots of a record. Early builds wrote only the last slot.
 * @throws DamagedValueError if another program has written the record: the task may be done.
 */
function slotsOf(key: string, done: unknown): readonly StoredSlot[] {
  if (done === undefined) return []
  if (isSlot(done)) {
    const { earlier = [], ...last } = done as StoredSlot & { readonly earlier?: unknown }
    if (Array.isArray(earlier) && earlier.every(isSlot)) return [last, ...earlier]
  }
  throw new DamagedValueError(
    `can't read which slots were done: the value of ${shown(key)} in the store ${RUNS} is not a record of schedule or oncePer; ` +
      'delete it to start again, which can do a slot a second time',
    { key },
  )
}

function isSlot(value: unknown): value is StoredSlot {
  if (typeof value !== 'object' || value === null) return false
  const { name, begins } = value as { readonly [key in keyof StoredSlot]: unknown }
  return typeof name === 'string' && (begins === undefined || typeof begins === 'number')
}
