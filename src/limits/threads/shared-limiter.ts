import { foreignRuntime, sharedClock, type Clock } from '../../clock.js'
import type { Duration } from '../../duration.js'
import { InvalidArgumentError, shown, UnavailableError } from '../../errors.js'
import { drainOf, endAll, type LimiterCloseOptions } from '../closing.js'
import { LocalWaiters } from '../local/local-waiters.js'
import { WaitingLimiter } from '../local/waiting-limiter.js'
import { checkedOptions, rulesOf, type AcquireOptions, type LimitOptions } from '../limit-options.js'
import type { Permit } from '../permit.js'
import { SharedRing } from './shared-ring.js'
import { notesBytes, SharedPermitCounter } from './shared-permit-counter.js'
import { ThreadTurns, TURNS_BYTES } from './thread-turns.js'
import { Times } from '../local/times.js'

/** One limit, or several that hold together, for several threads. */
export type SharedLimiterOptions = {
  /** By how much the time from the grant of a permit to the arrival of its call can vary; default 0. */
  jitter?: Duration | undefined
  /** How many callers of one thread may wait; default: any number. Further ones get a BusyError. */
  queue?: number | undefined
} & (LimitOptions | { limits: readonly LimitOptions[] })

/** What another thread needs to join; `workerData` and `postMessage` carry it as it is. */
export interface SharedLimiterHandle {
  readonly limits: readonly Readonly<LimitOptions>[]
  readonly jitter: number
  readonly queue: number | undefined
  readonly ring: SharedArrayBuffer
  readonly notes: SharedArrayBuffer
  readonly turns: SharedArrayBuffer
}

/** The greatest limit: each permit takes eight bytes of shared memory. */
const MAX_SHARED = 1_000_000

/**
 * A limiter whose count is shared by worker threads. Each has one of its own, made from the same handle. A pause holds
 * for all threads, to a sixteenth of a second, and is never too short.
 */
export class SharedLimiter extends WaitingLimiter implements AsyncDisposable {
  /** For other threads. */
  readonly handle: SharedLimiterHandle
  readonly #clock: Clock
  protected readonly waiters: LocalWaiters
  readonly #turns: ThreadTurns
  #listening = false

  /**
   * Shared limiters come from `sharedLimiter` and `joinLimiter`.
   * @param clock the same in all threads.
   * @param readWall milliseconds since 1970.
   */
  constructor(handle: SharedLimiterHandle, clock: Clock, readWall: () => number) {
    super()
    const { limits, jitter, queue, ring, notes, turns } = handle
    this.handle = handle
    this.#clock = clock
    const rules = rulesOf(checkedOptions({ limits, queue, jitter }))
    const times = new Times(rules.windows, clock, readWall)
    this.#turns = new ThreadTurns(turns, () => clock.now())
    const counter = new SharedPermitCounter(rules, jitter, times, new SharedRing(ring), notes, this.#turns)
    this.waiters = new LocalWaiters(rules, times, counter, {}, this.#turns)
  }

  override acquire(n?: number, options?: AcquireOptions): Promise<Permit> {
    void this.#listen()
    return super.acquire(n, options)
  }

  /**
   * Ends the part of this thread. Waiters here are rejected with a ClosedError, unless `drain` lets them have their
   * turn first. Other threads continue.
   * @throws InvalidArgumentError
   */
  async close(options: LimiterCloseOptions = {}): Promise<void> {
    const drain = drainOf(options)
    this.waiters.shut()
    await endAll([this.waiters], drain, this.#clock)
    // A listener that is left open keeps the shared memory.
    if (this.#listening) this.#turns.notify()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /**
   * Looks again whenever another thread gave something up. There is one promise at a time, and it does not keep the
   * process alive.
   */
  async #listen(): Promise<void> {
    if (this.#listening) return
    this.#listening = true
    await this.#turns.listen()
    this.#listening = false
    if (!this.waiters.waiting) return
    this.waiters.wake()
    void this.#listen()
  }
}

/**
 * A limiter for the threads of this process: exact, and in the order of arrival. Give its `handle` to other threads. A
 * limit is at most a million.
 * @throws InvalidArgumentError that names the option, what it got and what it takes; UnavailableError on Bun and Deno.
 */
export function sharedLimiter(options: SharedLimiterOptions): SharedLimiter {
  const { limits, jitter } = checkedOptions(options, ['jitter', 'queue'])
  for (const { limit } of limits) {
    if (limit > MAX_SHARED) {
      throw new InvalidArgumentError(
        `limit must be at most ${MAX_SHARED} for a limiter that threads share, not ${limit}`,
      )
    }
  }
  const longest = Math.max(...limits.map(({ per }) => per)) + jitter
  return joinLimiter({
    limits: limits.map(({ limit, per, kind, timeZone }) => {
      return { limit, per, window: kind, timeZone: timeZone || undefined }
    }),
    jitter,
    queue: options.queue,
    ring: SharedRing.memory(Math.max(...limits.map(({ limit }) => limit)), sharedClock.now() - longest - 1),
    notes: new SharedArrayBuffer(notesBytes(limits.length)),
    turns: new SharedArrayBuffer(TURNS_BYTES),
  })
}

/**
 * The limiter of another thread, in this one.
 * @param handle of a `sharedLimiter`.
 * @throws InvalidArgumentError when it is not one; UnavailableError on Bun and Deno.
 */
export function joinLimiter(handle: SharedLimiterHandle): SharedLimiter {
  if (!isHandle(handle))
    throw new InvalidArgumentError(`handle must be the handle of a shared limiter, not ${shown(handle)}`)
  if (foreignRuntime !== undefined) {
    throw new UnavailableError(
      `threads can't share a limiter on ${foreignRuntime}, because its threads have no common clock; use Node`,
    )
  }
  return new SharedLimiter(handle, sharedClock, Date.now)
}

function isHandle(handle: SharedLimiterHandle): boolean {
  const { limits, ring, notes, turns } = (handle as SharedLimiterHandle | undefined) ?? {}
  return (
    [ring, notes, turns].every(memory => memory instanceof SharedArrayBuffer) &&
    Array.isArray(limits) &&
    SharedRing.isOne(ring!, Math.max(...(limits as readonly LimitOptions[]).map(({ limit }) => limit))) &&
    notes!.byteLength === notesBytes(limits.length) &&
    turns!.byteLength === TURNS_BYTES
  )
}
