import { systemClock } from '../../../src/base/clock.js'
import { pause } from '../../../packages/conformance/src/time.js'
import type { BoxLimiter } from '../../../src/index.js'
import { mostWithin } from './service.js'

const TICK = 5
/** A hold is longer than what was measured by so much. */
const MARGIN = 1.15

/** What was seen for a while. */
export interface Seen {
  /** In how many milliseconds as many permits were given as the limit is, on average. */
  readonly perWindow: number
  /** How many times as many permits were given. */
  readonly windows: number
  /** Maximum delay of the event loop, in milliseconds. */
  readonly late: number
}

/** Callers of a limiter that want one permit after the other, and more of them than the limit is. */
export class Work implements AsyncDisposable {
  /** When each was given: clock times. */
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

  /** The most in any window, as far as a late event loop does not hide how far apart calls were. */
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

/** By how much a window may be longer for such a delay: what was measured may be followed by as much. */
export function holdFor(delay: number): number {
  return MARGIN * delay
}
