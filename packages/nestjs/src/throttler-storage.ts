import { createHash } from 'node:crypto'
import {
  InvalidArgumentError,
  type Box,
  type BoxLimiter,
  type BoxLimiterOptions,
  type KeyedBoxLimiter,
} from 'signalbox'

/** Options of {@link SignalboxThrottlerStorage}: the treatment of requests while the engine is unreachable. */
export type ThrottlerStorageOptions = Pick<BoxLimiterOptions, 'onUnavailable' | 'shares'>

/** The outcome of a request, as the guard of `@nestjs/throttler` expects it. Times are in seconds. */
export interface ThrottlerRecord {
  readonly totalHits: number
  readonly timeToExpire: number
  readonly isBlocked: boolean
  readonly timeToBlockExpire: number
}

/** The greatest limit of a limiter. A greater one, such as Infinity, limits nothing. */
const MAX_LIMIT = 1e9
/** The longest block, in milliseconds: 365 days. */
const MAX_BLOCK = 365 * 86_400_000
/** The longest window, in milliseconds: 366 days. */
const MAX_WINDOW = 366 * 86_400_000
/** Number of limiters that are kept. An application may compute the limit of each request. */
const MAX_LIMITERS = 1000

/**
 * A storage for `@nestjs/throttler`. In any interval of length `ttl`, at most `limit` requests pass in all processes
 * together, also if they arrive at the same moment and for any `blockDuration`. Needs an engine with limits: memory,
 * files, Redis or PostgreSQL.
 */
export class SignalboxThrottlerStorage {
  readonly #box: Box
  readonly #options: ThrottlerStorageOptions
  /** By name, because checking the options takes longer than a decision. */
  readonly #limiters = new Map<string, BoxLimiter>()
  /** The blocks that are being set, by limiter and key. */
  readonly #blocking = new Map<string, Promise<void>>()

  constructor(box: Box, options: ThrottlerStorageOptions = {}) {
    this.#box = box
    this.#options = options
  }

  /**
   * Counts a request if the limit admits it. Otherwise the key is blocked for `blockDuration`; requests that arrive
   * meanwhile do not prolong the block.
   * @param ttl length of the window, in milliseconds.
   * @param blockDuration milliseconds, at most 365 days; 0 to block only until the limit admits a request.
   * @throws UnavailableError or IndeterminateError, unless `onUnavailable` says otherwise; ClosedError,
   * InvalidArgumentError
   */
  async increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName: string,
  ): Promise<ThrottlerRecord> {
    if (typeof ttl !== 'number' || !(ttl >= 1 && ttl <= MAX_WINDOW))
      throw new InvalidArgumentError(
        `ttl must be milliseconds, from 1 to ${MAX_WINDOW}, not ${typeof ttl === 'string' ? `'${String(ttl)}'` : String(ttl)}`,
      )
    const most = Math.floor(limit)
    if (most > MAX_LIMIT) return passed(0, ttl)
    if (most < 1) return blocked(most, ttl, blockDuration || ttl)
    const name = `throttler:${throttlerName}:${most}/${ttl}`
    // A hash, because an application may make keys of any text of a request.
    const hash = createHash('sha256').update(key).digest('base64url')
    const limiter = this.#limiter(name, most, ttl).key(hash)
    const { permit, explanation } = await limiter.decide()
    const { remaining = 0, resetIn = ttl } = explanation?.limits[0] ?? {}
    if (permit) return passed(most - remaining, resetIn)
    const readyIn = explanation?.readyIn ?? ttl
    if (explanation?.waitsFor !== 'limit' || !(blockDuration > 0)) return blocked(most, resetIn, readyIn)
    const duration = Math.min(blockDuration, MAX_BLOCK)
    await this.#block(`${name} ${hash}`, limiter, duration)
    return blocked(most, resetIn, Math.max(readyIn, duration))
  }

  #limiter(name: string, limit: number, per: number): BoxLimiter {
    let limiter = this.#limiters.get(name)
    if (!limiter) {
      limiter = this.#box.limiter(name, { limit, per, ...this.#options })
      if (this.#limiters.size >= MAX_LIMITERS) this.#limiters.clear()
      this.#limiters.set(name, limiter)
    }
    return limiter
  }

  /** Blocks a key. Of many requests that are refused at the same moment, the first one does it for all. */
  #block(id: string, limiter: KeyedBoxLimiter, duration: number): Promise<void> {
    let blocking = this.#blocking.get(id)
    if (!blocking) {
      blocking = limiter.pauseUntil(Date.now() + duration).finally(() => this.#blocking.delete(id))
      this.#blocking.set(id, blocking)
    }
    return blocking
  }
}

function passed(totalHits: number, resetIn: number): ThrottlerRecord {
  return { totalHits, timeToExpire: seconds(resetIn), isBlocked: false, timeToBlockExpire: 0 }
}

function blocked(limit: number, resetIn: number, readyIn: number): ThrottlerRecord {
  return {
    totalHits: limit + 1,
    timeToExpire: seconds(resetIn),
    isBlocked: true,
    timeToBlockExpire: seconds(readyIn),
  }
}

function seconds(milliseconds: number): number {
  return Math.ceil(milliseconds / 1000)
}
