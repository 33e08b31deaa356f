import { describe, expect, test } from 'vitest'
import type { Proxy } from '../../apps/chaos/servers/proxy.js'
import { systemClock } from '../../src/clock.js'
import { pause, until } from '../../src/conformance/time.js'
import type { BoxLimiter, BoxLimiterOptions } from '../../src/index.js'
import { mostWithin } from '../limits/service.js'
import { RedisPlace, through } from '../redis/place.js'

const LIMIT = 20
const PER = 1000
/** A hold is longer than what was measured by so much. */
const MARGIN = 1.15
const TICK = 5

/** Callers that want one permit after the other, and when they were given each: clock times. */
class Work implements AsyncDisposable {
  readonly times: number[] = []
  /** By how much the event loop was late at the most since this was asked for the last time: milliseconds. */
  #late = 0
  readonly #timer: NodeJS.Timeout
  readonly #ended = new AbortController()
  readonly #callers: Promise<unknown>

  constructor(limiter: BoxLimiter) {
    const call = async (): Promise<void> => {
      while (!this.#ended.signal.aborted) {
        await limiter.acquire(1, { signal: this.#ended.signal })
        this.times.push(systemClock.now())
      }
    }
    const callers = Array.from({ length: 3 * LIMIT }, () => call().catch(this.#unlessEnded))
    this.#callers = Promise.all(callers)
    let before = systemClock.now()
    this.#timer = setInterval(() => {
      const now = systemClock.now()
      this.#late = Math.max(this.#late, now - before - TICK)
      before = now
    }, TICK)
  }

  /** How many permits are given within so many milliseconds, and how late the event loop is meanwhile. */
  async during(duration: number): Promise<{ given: number; late: number }> {
    const before = this.times.length
    this.#late = 0
    await pause(duration)
    return { given: this.times.length - before, late: this.#late }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    this.#ended.abort()
    await this.#callers
  }

  readonly #unlessEnded = (error: unknown): void => {
    if (!this.#ended.signal.aborted) throw error
  }
}

/** A limiter behind a network that takes so many milliseconds for each way. */
async function distant(here: RedisPlace, delay: number, options: Partial<BoxLimiterOptions> = {}) {
  const network: Proxy = await here.network()
  const box = await here.box(through(network))
  network.delay = delay
  const limiter = box.limiter('api', { limit: LIMIT, per: PER, ...options } as BoxLimiterOptions)
  return { network, limiter }
}

/** What of a rate is left, where the event loop was late by so much beside. */
function leastPart(part: number, late: number): number {
  return part - (MARGIN * late) / PER
}

/** The most in any window, as far as the event loop did not hide how far apart calls were. */
function worst({ times }: Work, late: number): number {
  return mostWithin(times, PER - late)
}

describe('a limit of 20 in a second over a slow link to Redis', () => {
  test.concurrent.each([
    [25, 0.09],
    [100, 0.22],
  ])(
    'of %i ms each way gives permits for all but %f of the time, and no window has more',
    async (delay, less) => {
      await using here = await RedisPlace.start()
      const { limiter } = await distant(here, delay)
      await using work = new Work(limiter)
      const first = await work.during(3000)
      const { given, late } = await work.during(20 * PER)
      expect(given).toBeGreaterThanOrEqual(
        Math.floor(leastPart(1 - less, Math.max(late, first.late)) * 20 * LIMIT),
      )
      expect(worst(work, Math.max(late, first.late))).toBeLessThanOrEqual(LIMIT)
      expect(limiter.outage).toBeUndefined()
    },
  )

  test.concurrent(
    'that becomes as slow suddenly loses a window, and is as quick again when the link is',
    async () => {
      await using here = await RedisPlace.start()
      const { network, limiter } = await distant(here, 1)
      await using work = new Work(limiter)
      const before = await work.during(5000)
      network.delay = 100
      const slow = await work.during(11 * PER)
      expect(slow.given).toBeGreaterThanOrEqual(Math.floor(leastPart(0.78, slow.late) * 10 * LIMIT))
      network.delay = 1
      const between = await work.during(6000)
      const quick = await work.during(10 * PER)
      expect(quick.given).toBeGreaterThanOrEqual(Math.floor(leastPart(0.96, quick.late) * 10 * LIMIT))
      const late = Math.max(before.late, slow.late, between.late, quick.late)
      expect(worst(work, late)).toBeLessThanOrEqual(LIMIT)
      expect(limiter.outage).toBeUndefined()
    },
  )

  test.concurrent('that breaks leaves a process its own share where it is open, and no more', async () => {
    await using here = await RedisPlace.start()
    const { network, limiter } = await distant(here, 100, { onUnavailable: 'open' })
    await using work = new Work(limiter)
    const before = await work.during(4000)
    expect(limiter.outage).toBeUndefined()
    expect(worst(work, before.late)).toBeLessThanOrEqual(LIMIT)
    const cutAt = systemClock.now()
    network.target = undefined
    network.cut()
    await until('it is heard of', () => limiter.outage !== undefined)
    const away = await work.during(5 * PER)
    expect(limiter.outage).toBeDefined()
    const own = work.times.filter(time => time >= cutAt)
    expect(mostWithin(own, PER - away.late)).toBeLessThanOrEqual(LIMIT)
    expect(away.given).toBeGreaterThanOrEqual(4 * LIMIT)
    network.target = here.server.port
    await until('it is back', () => limiter.outage === undefined)
    const after = await work.during(4000)
    const late = Math.max(before.late, away.late, after.late)
    // What the engine gave just before, and just after, adds to what the process has given alone.
    expect(worst(work, late)).toBeLessThanOrEqual(2 * LIMIT)
    const back = work.times.filter(time => time >= systemClock.now() - 3000)
    expect(mostWithin(back, PER - after.late)).toBeLessThanOrEqual(LIMIT)
  })
})
