import type { Timer } from '../base/clock.js'

/** The clock of `@sinonjs/fake-timers`, which Jest, vitest and Sinon.JS use. */
interface SinonClock {
  /** Milliseconds since 1970, which `setSystemTime` changes. */
  readonly now: number
  /** Seconds and nanoseconds, which `setSystemTime` does not change. */
  hrtime(): readonly [seconds: number, nanoseconds: number]
  setTimeout(task: () => void, delay: number): unknown
  clearTimeout(id: unknown): void
  countTimers(): number
  tickAsync(duration: number): Promise<unknown>
  runAll(): unknown
  runAllAsync(): Promise<unknown>
}

/** Maximum delay, in milliseconds. The clock treats a longer delay as 1 ms. */
const MAX_DELAY = 2 ** 31 - 1

const known = new WeakMap<SinonClock, FakeTimers>()

/**
 * Returns the fake timers that are installed now, if any. Their `setTimeout` has their clock as a property; libraries
 * for tests recognize fake timers by it.
 */
export function installedFakeTimers(): FakeTimers | undefined {
  const { clock } = globalThis.setTimeout as { readonly clock?: SinonClock }
  if (typeof clock?.tickAsync !== 'function') return undefined
  let timers = known.get(clock)
  if (!timers) known.set(clock, (timers = new FakeTimers(clock)))
  return timers
}

export class FakeTimers {
  readonly #clock: SinonClock
  /** The background timers in the queue of the clock. */
  readonly #background = new Set<() => void>()
  /** Number of calls that run timers until none is left. */
  #runningAll = 0
  /** Functions that set the background timers that such a call has held back. */
  readonly #heldBack = new Set<() => void>()
  #lastNow = 0

  constructor(clock: SinonClock) {
    this.#clock = clock
    // Renewals of a grant set timers forever. These calls hold them back, because otherwise they would never return.
    const runAll = clock.runAll.bind(clock)
    const runAllAsync = clock.runAllAsync.bind(clock)
    clock.runAll = () => {
      this.#runningAll++
      try {
        return runAll()
      } finally {
        this.#ranAll()
      }
    }
    clock.runAllAsync = () => {
      this.#runningAll++
      return runAllAsync().finally(() => this.#ranAll())
    }
  }

  now(): number {
    const [seconds, nanoseconds] = this.#clock.hrtime()
    const now = seconds * 1e3 + nanoseconds * 1e-6
    // Clearing all timers sets the time back.
    if (now < this.#lastNow) this.#background.clear()
    return (this.#lastNow = now)
  }

  wall(): number {
    return this.#clock.now
  }

  /**
   * Runs `task` after at least `delay` milliseconds.
   * @param isBackground whether no caller waits for it. Such a timer is held back while a call runs timers until none
   * is left, and only background timers remain.
   */
  after(delay: number, task: () => void, isBackground: boolean): Timer {
    const due = this.now() + delay
    let cancel: () => void
    const set = (): void => {
      const isAlone = this.#clock.countTimers() === this.#background.size
      const mustWait = isBackground && this.#runningAll > 0 && isAlone
      cancel = mustWait ? this.#holdBack(set) : this.#set(due - this.now(), run, isBackground)
    }
    const run = (): void => {
      if (this.now() < due) set()
      else task()
    }
    set()
    return { cancel: () => cancel() }
  }

  /** Advances by `duration` milliseconds. Between two timers, pending promises settle. */
  async advance(duration: number): Promise<void> {
    await this.#clock.tickAsync(duration)
  }

  #set(delay: number, task: () => void, isBackground: boolean): () => void {
    const run = (): void => {
      this.#background.delete(run)
      task()
    }
    if (isBackground) this.#background.add(run)
    // The clock counts whole milliseconds.
    const id = this.#clock.setTimeout(run, Math.min(Math.ceil(Math.max(delay, 0)), MAX_DELAY))
    return () => {
      this.#background.delete(run)
      this.#clock.clearTimeout(id)
    }
  }

  #holdBack(set: () => void): () => void {
    this.#heldBack.add(set)
    return () => void this.#heldBack.delete(set)
  }

  #ranAll(): void {
    if (--this.#runningAll > 0) return
    const heldBack = [...this.#heldBack]
    this.#heldBack.clear()
    for (const set of heldBack) set()
  }
}
