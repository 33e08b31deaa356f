import type { Clock, Timer } from '../base/clock.js'
import { WATCH_READ_INTERVAL } from '../engine/wait-times.js'
import type { QueueSession } from './pending-request.js'

/** Minimum delay between two reads of all watched keys, in milliseconds. */
const READ_PAUSE = 1000
/** Maximum number of keys in one operation. The next one is sent after its answer, so that a read causes no burst. */
const MAX_KEYS = 64

/**
 * Called when a watched key has changed, or may have changed.
 * @param version the version of the key, if it is known
 */
export type OnChange = (version?: number) => void

export interface Watching {
  /** Schedules another read, because its user could not read the key. False: the session has ended. */
  readAgain(): boolean
  stop(): void
}

interface Watch {
  readonly tasks: Set<OnChange>
  /** Settles when the engine has accepted the watch. */
  readonly begun: Promise<undefined>
}

/**
 * The watchers of one box. A hint of the engine notifies them of a change at once. Because hints may be lost, the box
 * also reads all watched keys: when the engine reports that it may have missed changes, and every
 * {@link WATCH_READ_INTERVAL} milliseconds.
 */
export class Watchers {
  readonly #session: string
  readonly #send: QueueSession['send']
  readonly #clock: Clock
  readonly #watches = new Map<string, Watch>()
  /** The timer of the regular reads. It starts with the first watch, so that boxes don't all read at the same time. */
  #regular: Timer | undefined
  #next: Timer | undefined
  /** When the last read ended: clock time. */
  #readAt = -Infinity
  #isReading = false
  /** Whether there may be a change that the current or last read has not seen. */
  #mayHaveMissed = false

  constructor(session: string, send: QueueSession['send'], clock: Clock) {
    this.#session = session
    this.#send = send
    this.#clock = clock
  }

  /**
   * Calls `task` after each change of a key, until the returned object's `stop` is called.
   * @throws what the engine rejects `watch` with
   */
  async watch(key: string, task: OnChange): Promise<Watching> {
    const watch = this.#watches.get(key) ?? this.#begin(key)
    const { tasks, begun } = watch
    tasks.add(task)
    try {
      await begun
    } catch (error) {
      // The next watcher sends the operation again.
      this.#forget(key, watch)
      throw error
    }
    const stop = (): void => {
      if (!tasks.delete(task) || tasks.size > 0) return
      if (this.#forget(key, watch)) void this.#ask('unwatch', key).catch(() => undefined)
    }
    const readAgain = (): boolean => {
      this.missed()
      return this.#watches.get(key) === watch
    }
    return { readAgain, stop }
  }

  changed(key: string): void {
    this.#notify(key)
  }

  /** Schedules a read of all watched keys, because the engine may have missed changes. */
  missed(): void {
    if (this.#watches.size === 0) return
    this.#mayHaveMissed = true
    if (!this.#isReading) this.#schedule()
  }

  /** Notifies all watchers, because the session has ended: their next read rejects. */
  end(): void {
    const keys = [...this.#watches.keys()]
    this.#rest()
    for (const key of keys) this.#notify(key)
    this.#watches.clear()
  }

  #begin(key: string): Watch {
    const watch: Watch = { tasks: new Set(), begun: this.#ask('watch', key) }
    this.#watches.set(key, watch)
    if (this.#watches.size === 1) this.#readRegularly()
    return watch
  }

  #forget(key: string, watch: Watch): boolean {
    if (this.#watches.get(key) !== watch) return false
    this.#watches.delete(key)
    if (this.#watches.size === 0) this.#rest()
    return true
  }

  async #ask(type: 'watch' | 'unwatch', key: string): Promise<undefined> {
    return this.#send({ type, session: this.#session, key })
  }

  #notify(key: string, version?: number): void {
    for (const task of this.#watches.get(key)?.tasks ?? []) task(version)
  }

  #readRegularly(): void {
    const read = (): void => {
      this.#readRegularly()
      // mutant: watcher-never-polls
      this.missed()
    }
    this.#regular = this.#clock.after(WATCH_READ_INTERVAL, read, false)
  }

  #rest(): void {
    this.#mayHaveMissed = false
    this.#regular?.cancel()
    this.#next?.cancel()
  }

  #schedule(): void {
    this.#next?.cancel()
    const delay = Math.max(this.#readAt + READ_PAUSE - this.#clock.now(), 0)
    this.#next = this.#clock.after(delay, () => void this.#readAll(), false)
  }

  async #readAll(): Promise<void> {
    this.#isReading = true
    this.#mayHaveMissed = false
    const keys = [...this.#watches.keys()]
    try {
      for (let first = 0; first < keys.length; first += MAX_KEYS)
        await this.#read(keys.slice(first, first + MAX_KEYS))
    } catch {
      // The engine is out of reach.
      this.#mayHaveMissed = this.#watches.size > 0
    }
    this.#isReading = false
    this.#readAt = this.#clock.now()
    // mutant: failed-look-not-repeated
    if (this.#mayHaveMissed) this.#schedule()
  }

  async #read(all: readonly string[]): Promise<void> {
    const keys = all.filter(key => this.#watches.has(key))
    if (keys.length === 0) return
    try {
      const { values } = await this.#send({ type: 'read', keys, ids: [] })
      for (const [index, { version }] of values.entries()) this.#notify(keys[index]!, version)
    } catch (error) {
      const { key: unreadable } = error as { key?: string }
      if (unreadable === undefined || !keys.includes(unreadable)) throw error
      // The value of this key is damaged. Its watchers are notified, so that they see the error, and the other keys are
      // read without it.
      this.#notify(unreadable)
      await this.#read(keys.filter(key => key !== unreadable))
    }
  }
}
