import { sharedClock, type Clock } from '../../base/clock.js'
import type { Duration } from '../../base/duration.js'
import { InvalidArgumentError, shown } from '../../base/errors.js'
import { closeAll, drainOf, type LimiterCloseOptions } from '../closing.js'
import { LocalPermits } from '../local/local-permits.js'
import { WaitingLimiter } from '../local/waiting-limiter.js'
import { checkedOptions, rulesOf, type AcquireOptions, type LimitOptions } from '../limit-options.js'
import type { Limiter } from '../limiter.js'
import { LimiterErrors } from '../limiter-errors.js'
import type { Permit } from '../permit.js'
import { SharedRing } from './shared-ring.js'
import { notesBytes, SharedPermitCounter } from './shared-permit-counter.js'
import { ThreadTurns, TURNS_BYTES } from './thread-turns.js'
import { Times } from '../times.js'

/** Options of a limiter that several threads share. */
export type SharedLimiterOptions = {
  /** Maximum variation of the time from the grant of a permit to the arrival of its call; default 0. */
  jitter?: Duration | undefined
  /** Maximum number of waiting callers of one thread; default: no maximum. Further ones get a BusyError. */
  queue?: number | undefined
} & (LimitOptions | { limits: readonly LimitOptions[] })

/** The handle by which another thread joins. Pass it by `workerData` or `postMessage`. */
export interface SharedLimiterHandle {
  readonly limits: readonly Readonly<LimitOptions>[]
  readonly jitter: number
  readonly queue: number | undefined
  readonly ring: SharedArrayBuffer
  readonly notes: SharedArrayBuffer
  readonly turns: SharedArrayBuffer
}

/** Maximum limit, because each permit takes eight bytes of shared memory. */
const MAX_SHARED = 1_000_000

/**
 * A limiter whose count several worker threads share. Each thread has its own object, created from the same handle. A
 * pause applies to all threads; it is exact to a sixteenth of a second, and never too short.
 */
export class SharedLimiter extends WaitingLimiter implements AsyncDisposable {
  /** The handle for other threads. */
  readonly handle: SharedLimiterHandle
  readonly #clock: Clock
  readonly #own: LocalPermits
  readonly #turns: ThreadTurns
  #listening = false

  /**
   * Use `sharedLimiter` and `joinLimiter`.
   * @param clock the same in all threads.
   * @param readWall returns milliseconds since 1970.
   */
  constructor(handle: SharedLimiterHandle, clock: Clock, readWall: () => number) {
    super()
    const { limits, jitter, queue, ring, notes, turns } = handle
    this.handle = handle
    this.#clock = clock
    const rules = rulesOf(checkedOptions({ limits, queue, jitter }))
    const times = new Times(rules.windows, clock, readWall)
    this.#turns = new ThreadTurns(turns, () => clock.now())
    const counter = new SharedPermitCounter(rules, jitter, times, ring, notes, this.#turns)
    this.#own = new LocalPermits(rules, times, counter, new LimiterErrors(undefined), this.#turns)
  }

  protected get permits(): Omit<Limiter, 'run'> {
    return this.#own
  }

  override acquire(n?: number, options?: AcquireOptions): Promise<Permit> {
    void this.#listen()
    return super.acquire(n, options)
  }

  /**
   * Closes the limiter in this thread; other threads continue. Waiters of this thread are rejected with a ClosedError,
   * unless `drain` serves them first.
   * @throws InvalidArgumentError
   */
  async close(options: LimiterCloseOptions = {}): Promise<void> {
    const drain = drainOf(options)
    this.#own.shut()
    await closeAll([this.#own], drain, this.#clock)
    // A pending listener would keep the shared memory alive.
    if (this.#listening) this.#turns.notify()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /**
   * Serves waiters whenever another thread has returned permits. There is one promise at a time, and it does not keep
   * the process alive.
   */
  async #listen(): Promise<void> {
    if (this.#listening) return
    this.#listening = true
    await this.#turns.listen()
    this.#listening = false
    if (!this.#own.waiting) return
    this.#own.wake()
    void this.#listen()
  }
}

/**
 * Creates a limiter for the threads of this process. It is exact, and serves callers in the order of arrival. Pass its
 * `handle` to other threads. A limit is at most a million.
 * @throws InvalidArgumentError; UnavailableError on Bun and Deno if they can't read a clock that threads share.
 */
export function sharedLimiter(options: SharedLimiterOptions): SharedLimiter {
  const { limits, jitter } = checkedOptions(options, ['jitter', 'queue'])
  for (const { limit, unit } of limits) {
    if (unit !== undefined)
      throw new InvalidArgumentError(`a limit that threads share counts calls, not ${unit}`)
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
 * Joins the limiter of another thread.
 * @param handle the `handle` of a `sharedLimiter`.
 * @throws InvalidArgumentError when the handle is invalid.
 */
export function joinLimiter(handle: SharedLimiterHandle): SharedLimiter {
  if (!isHandle(handle))
    throw new InvalidArgumentError(`handle must be the handle of a shared limiter, not ${shown(handle)}`)
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
