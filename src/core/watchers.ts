import type { Clock, Timer } from '../clock.js'
import { LOOK_EVERY, type Awaitable, type Operation, type OutcomeOf } from '../engine/contract.js'

/** A look begins at least this long after the last one, in milliseconds. */
const LOOK_PAUSE = 1000
/** One read asks for at most this many keys. The next one follows its answer, so that many watchers cause no burst. */
const KEYS_AT_ONCE = 64

/**
 * What a watcher does when its key has changed, or may have.
 * @param version the version of the key, where that is known
 */
export type OnChange = (version?: number) => void

/** One watcher among those of its box. */
export interface Watching {
  /** Has the key read again, because it could not be read after its change. False: the session has ended. */
  lookAgain(): boolean
  stop(): void
}

/** All watchers of one key. */
interface Watch {
  readonly tasks: Set<OnChange>
  /** Settles when the engine has accepted the watch. */
  readonly begun: Promise<undefined>
}

/** Sends an operation to the engine. */
type Send = <O extends Operation>(operation: O) => Awaitable<OutcomeOf<O>>

/**
 * The watchers of one box. A hint notifies them of a change at once. Because hints may be lost, all watched keys are
 * also read: when the engine knows that it may have missed some, and every {@link LOOK_EVERY} milliseconds.
 */
export class Watchers {
  readonly #session: string
  readonly #send: Send
  readonly #clock: Clock
  readonly #watches = new Map<string, Watch>()
  /** Runs from the first watch, regardless of other reads, so that boxes don't all read at the same moment. */
  #regular: Timer | undefined
  #next: Timer | undefined
  #lookedAt = -Infinity
  #isLooking = false
  /** Whether there may be a change that the look under way, or the last one, has not seen. */
  #isMissing = false

  constructor(session: string, send: Send, clock: Clock) {
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
      // The next watcher asks the engine again.
      this.#forget(key, watch)
      throw error
    }
    const stop = (): void => {
      if (!tasks.delete(task) || tasks.size > 0) return
      if (this.#forget(key, watch)) void this.#ask('unwatch', key).catch(() => undefined)
    }
    const lookAgain = (): boolean => {
      this.missed()
      return this.#watches.get(key) === watch
    }
    return { lookAgain, stop }
  }

  /** Handles the engine's hint that a key has changed. */
  changed(key: string): void {
    this.#notify(key)
  }

  /** The engine may have missed changes. */
  missed(): void {
    if (this.#watches.size === 0) return
    this.#isMissing = true
    if (!this.#isLooking) this.#schedule()
  }

  /** The session has ended: all watchers find out by their next read. */
  end(): void {
    const keys = [...this.#watches.keys()]
    this.#rest()
    for (const key of keys) this.#notify(key)
    this.#watches.clear()
  }

  #begin(key: string): Watch {
    const watch: Watch = { tasks: new Set(), begun: this.#ask('watch', key) }
    this.#watches.set(key, watch)
    if (this.#watches.size === 1) this.#lookRegularly()
    return watch
  }

  /** @returns whether the watch was still there */
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

  #lookRegularly(): void {
    const look = (): void => {
      this.#lookRegularly()
      // mutant: watcher-never-polls
      this.missed()
    }
    this.#regular = this.#clock.after(LOOK_EVERY, look, false)
  }

  #rest(): void {
    this.#isMissing = false
    this.#regular?.cancel()
    this.#next?.cancel()
  }

  #schedule(): void {
    this.#next?.cancel()
    const delay = Math.max(this.#lookedAt + LOOK_PAUSE - this.#clock.now(), 0)
    this.#next = this.#clock.after(delay, () => void this.#look(), false)
  }

  async #look(): Promise<void> {
    this.#isLooking = true
    this.#isMissing = false
    const keys = [...this.#watches.keys()]
    try {
      for (let first = 0; first < keys.length; first += KEYS_AT_ONCE)
        await this.#lookAt(keys.slice(first, first + KEYS_AT_ONCE))
    } catch {
      // The engine can't be reached just now.
      this.#isMissing = this.#watches.size > 0
    }
    this.#isLooking = false
    this.#lookedAt = this.#clock.now()
    if (this.#isMissing) this.#schedule()
  }

  async #lookAt(all: readonly string[]): Promise<void> {
    const keys = all.filter(key => this.#watches.has(key))
    if (keys.length === 0) return
    try {
      const { values } = await this.#send({ type: 'read', keys, ids: [] })
      for (const [index, { version }] of values.entries()) this.#notify(keys[index]!, version)
    } catch (error) {
      const { key: unreadable } = error as { key?: string }
      if (unreadable === undefined || !keys.includes(unreadable)) throw error
      // Another program has spoiled this value. The watchers of its key are notified, and the other keys are still
      // read.
      this.#notify(unreadable)
      await this.#lookAt(keys.filter(key => key !== unreadable))
    }
  }
}
