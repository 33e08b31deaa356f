import type { Clock, Timer } from 'signalbox/engine'
import { AtMost } from './at-most.js'
import type { EntryStore } from './entry-store.js'
import { FLOOR_LASTS, type Floor } from './floor.js'
import type { Found } from './key-changes.js'
import { isFree, type KeyEntry } from './key-entry.js'

/** An unused entry is kept for this long before the floor is raised for it, in milliseconds. */
const KEPT = 20_000
/** Interval at which entries are deleted, in milliseconds. */
const INTERVAL = 10_000
/** Maximum time until the search for other entries that have become free, in milliseconds. */
const LONGEST = 86_400_000
/** Maximum number of entries that are deleted at the same time. */
const AT_ONCE = 64

interface Candidate {
  readonly text: string
  /** The greatest number in it. */
  readonly number: number
  /** The clock time at which it became free, and later the one at which the floor was raised above it. */
  since: number
  isBelowFloor: boolean
}

/** Deletes unused entries that have no value. */
export class FreeEntries {
  readonly #store: EntryStore
  readonly #floor: Floor
  readonly #clock: Clock
  /** Called with a key whose entry was deleted. */
  readonly #deleted: (key: string) => void
  /** Called when free entries may exist that no open box has seen. */
  readonly #left: () => void
  readonly #candidates = new Map<string, Candidate>()
  readonly #removals = new AtMost(AT_ONCE)
  #timer: Timer | undefined
  /** Waits until an entry becomes free. */
  #later: Timer | undefined
  #isOver = false

  constructor(
    store: EntryStore,
    floor: Floor,
    clock: Clock,
    deleted: (key: string) => void,
    left: () => void,
  ) {
    this.#left = left
    this.#store = store
    this.#floor = floor
    this.#clock = clock
    this.#deleted = deleted
  }

  /** Whether some free entries are not deleted yet. */
  get isLeft(): boolean {
    return this.#candidates.size > 0
  }

  /** Call with the newest entry of a key. */
  see(key: string, { text, entry }: Found): void {
    if (text === undefined || !isFree(entry)) {
      this.#candidates.delete(key)
      if (entry.ids.length > 0) this.#waitFor(entry)
      return
    }
    if (this.#candidates.get(key)?.text === text) return
    const { turn, number } = entry.locks
    const greatest = Math.max(turn, number, entry.stamp)
    this.#candidates.set(key, { text, number: greatest, since: this.#clock.now(), isBelowFloor: false })
    this.#start()
  }

  end(): void {
    this.#isOver = true
    this.#timer?.cancel()
    this.#later?.cancel()
  }

  /** An entry that has only IDs is free once these have expired. A box that sweeps then finds all such entries. */
  #waitFor(entry: KeyEntry): void {
    if (this.#later || this.#isOver || !isFree({ ...entry, ids: [] })) return
    const delay = Math.max(...entry.ids.map(([, until]) => until - Date.now())) + INTERVAL
    const run = (): void => {
      this.#later = undefined
      this.#left()
    }
    this.#later = this.#clock.after(Math.min(delay, LONGEST), run, false)
  }

  #start(): void {
    if (this.#timer || this.#isOver || this.#candidates.size === 0) return
    const run = (): void => {
      const over = (): void => {
        this.#timer = undefined
        this.#start()
      }
      this.#delete().then(over, over)
    }
    this.#timer = this.#clock.after(INTERVAL, run, false)
  }

  async #delete(): Promise<void> {
    const now = this.#clock.now()
    const all = [...this.#candidates]
    const due = all.filter(([, each]) => each.isBelowFloor && now - each.since > FLOOR_LASTS)
    await Promise.all(due.map(([key, { text }]) => this.#removals.run(() => this.#remove(key, text))))
    const next = all.map(([, each]) => each).filter(each => !each.isBelowFloor && now - each.since >= KEPT)
    if (next.length === 0) return
    // mutant: delete-above-floor
    await this.#floor.raise(Math.max(...next.map(({ number }) => number)))
    for (const each of next) {
      each.isBelowFloor = true
      each.since = this.#clock.now()
    }
  }

  async #remove(key: string, text: string): Promise<void> {
    await this.#store.remove(key, text)
    if (this.#candidates.get(key)?.text === text) this.#candidates.delete(key)
    this.#deleted(key)
  }
}
