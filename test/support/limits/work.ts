import { systemClock } from '../../../src/base/clock.js'
import { pause } from '../../../packages/conformance/src/time.js'
import type { BoxLimiter } from '../../../src/index.js'
import { mostWithin } from './service.js'

const TICK = 5
/** Factor by which a hold is longer than the measured delay. */
const MARGIN = 1.15

/** Measurements of {@link Work.during}. */
export interface Seen {
  /** Mean time in which the limiter gave as many permits as its limit, in milliseconds. */
  readonly perWindow: number
  /** Number of times that it gave as many permits. */
  readonly windows: number
  /** Maximum delay of the event loop, in milliseconds. */
  readonly late: number
}

/** Callers of a limiter that take one permit after another: more callers than its limit. */
export class Work implements AsyncDisposable {
  /** When each permit was given: clock times. */
  readonly times: number[] = []
  readonly #limit: number
  #late = 0
  readonly #timer: NodeJS.Timeout
  readonly #ended = new AbortController()
  readonly #callers: Promise<unknown>

  constructor(limiter: BoxLimiter, limit: number) {
    this.#limit = limit
    const { signal } = this.#ended
    const call = async (): Promise<void> => {
      while (!signal.aborted) {
        await limiter.acquire(1, { signal })
        this.times.push(systemClock.now())
      }
    }
    const unlessEnded = (error: unknown): void => {
      if (!signal.aborted) throw error
    }
    this.#callers = Promise.all(Array.from({ length: 3 * limit }, () => call().catch(unlessEnded)))
    let before = systemClock.now()
    this.#timer = setInterval(() => {
      const now = systemClock.now()
      this.#late = Math.max(this.#late, now - before - TICK)
      before = now
    }, TICK)
  }

  /** Counts from one permit to another, because a limit gives its permits in bursts. */
  async during(duration: number): Promise<Seen> {
    const first = Math.max(this.times.length - 1, 0)
    this.#late = 0
    await pause(duration)
    const windows = Math.floor((this.times.length - 1 - first) / this.#limit)
    const perWindow = (this.times[first + windows * this.#limit]! - this.times[first]!) / windows
    return { perWindow, windows, late: this.#late }
  }

  /**
   * Returns the maximum number of permits in any window, which is shortened by the delay of the event loop, because a
   * late event loop notes calls closer together.
   */
  worst(per: number, late: number, since = -Infinity): number {
    return mostWithin(
      this.times.filter(time => time >= since),
      per - late,
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    this.#ended.abort()
    await this.#callers
  }
}

/** Returns the time by which a window may be longer after a measured delay. */
export function holdFor(delay: number): number {
  return MARGIN * delay
}
