import { systemClock } from '../../base/clock.js'
import { milliseconds, type Duration } from '../../base/duration.js'
import { withTaskBegan, InvalidArgumentError, shown } from '../../base/errors.js'
import { checkedInteger, checkOptions, flag } from '../../base/options.js'
import type { Amounts, Costs } from '../costs.js'
import { LEAP_YEAR, WAIT_BOUNDS, type TenantOptions } from '../limit-options.js'
import { pauseAskedFor, saysWhenToRetry } from './pause.js'

/** A limiter, as far as `limitFetch` needs it. All limiters of Signalbox and their keys match it. */
export interface CallLimiter {
  acquire(
    cost?: Costs,
    options?: TenantOptions & { signal?: AbortSignal | undefined; wait?: number | undefined },
  ): Promise<CallPermit>
  pauseUntil(time: number): unknown
}

/** Options of `limitFetch`. */
export interface LimitFetchOptions {
  /** Maximum number of retries of a call that the service refused; default 0. */
  retries?: number | undefined
  /**
   * Whether to retry calls of any method; default false: only those of the idempotent methods GET, HEAD, OPTIONS,
   * TRACE, PUT and DELETE.
   */
  idempotent?: boolean | undefined
  /** Maximum wait of one call for its permits, including retries; default: no limit. */
  wait?: Duration | undefined
  /**
   * Maximum pause that an answer can cause; default `'1h'`. If the service asks for a longer one, calls continue after
   * this time, and the next refusal pauses the limiter again.
   */
  maxPause?: Duration | undefined
  /** The estimated cost of a call, or a function that returns it from the arguments of `fetch`; default 1. */
  cost?: Costs | ((...call: Parameters<typeof fetch>) => Costs) | undefined
  /**
   * Returns the amounts that a call has used, such as `{ tokens: 700 }`, for `Permit.settle`; undefined if they are not
   * known. Called with a copy of each response, after the caller has got it. If it fails, the estimate stays.
   */
  used?: ((response: Response) => Amounts | undefined | Promise<Amounts | undefined>) | undefined
  /** On whose behalf the calls are sent, or a function that returns it from the arguments of `fetch`. */
  tenant?: TenantOptions | ((...call: Parameters<typeof fetch>) => TenantOptions | undefined) | undefined
}

type Input = Parameters<typeof fetch>[0]

interface CallPermit {
  settle(amounts: Amounts): unknown
  release(): unknown
  refund(): unknown
}

const MAX_RETRIES = 100
const MAX_PAUSE = 3_600_000
const PAUSE_BOUNDS = { min: 0, max: LEAP_YEAR }
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])

/**
 * Returns a `fetch` whose calls each wait for a permit of the limiter. Pauses the limiter, for at most `maxPause`,
 * after a 429 or 503 with `Retry-After`, or when a `RateLimit`, `RateLimit-Remaining` or `X-RateLimit-Remaining` header
 * shows that a quota is used up, also one of requests or tokens of OpenAI or Anthropic.
 *
 * With `retries`, a call that was answered 429 or 503 with a `Retry-After` is sent again when the service accepts calls
 * again. If the rest of `wait` passes without a permit, or the body is a stream, which can be sent only once, the
 * caller gets the refusal.
 *
 * ```ts
 * const callPartner = limitFetch(fetch, partner, { retries: 3, wait: '30s' })
 * const callModel = limitFetch(fetch, provider, {
 *   cost: { tokens: 1200 },
 *   used: async response => ({ tokens: (await response.json()).usage.total_tokens }),
 * })
 * ```
 *
 * The permit is released when the response headers arrive. A call whose signal aborts while it waits is rejected with
 * the signal's reason, as by `fetch`; if it was never sent, the limits don't count it. The limiter does not see
 * redirects that `fetch` follows by itself: pass `redirect: 'manual'` if they count.
 * @throws InvalidArgumentError. The returned function throws the errors of `fetch`, and those of the limiter's
 * `acquire`, with `taskBegan` false: the call was not sent.
 */
export function limitFetch<Fetch extends typeof fetch>(
  send: Fetch,
  limiter: CallLimiter,
  options: LimitFetchOptions = {},
): Fetch {
  if (typeof send !== 'function')
    throw new InvalidArgumentError(`fetch must be a function, not ${shown(send)}`)
  if (typeof limiter?.acquire !== 'function') {
    throw new InvalidArgumentError(`limiter must be a limiter, not ${shown(limiter)}`)
  }
  checkOptions(options, ['retries', 'idempotent', 'wait', 'maxPause', 'cost', 'used', 'tenant'])
  const { retries = 0, idempotent, maxPause = MAX_PAUSE, cost, used, tenant } = options
  checkedInteger('retries', retries, 0, MAX_RETRIES)
  const anyMethod = flag('idempotent', idempotent, false)
  const wait = options.wait === undefined ? undefined : milliseconds('wait', options.wait, WAIT_BOUNDS)
  const longest = milliseconds('maxPause', maxPause, PAUSE_BOUNDS)

  const limited = async (input: Input, init?: RequestInit): Promise<Response> => {
    const signal = signalOf(input, init)
    const until = wait === undefined ? undefined : systemClock.now() + wait
    const mostRetries = canRepeat(input, init, anyMethod) ? retries : 0
    const acquire = async (left: number | undefined): Promise<CallPermit> => {
      const its = typeof tenant === 'function' ? tenant(input, init) : tenant
      const costs = typeof cost === 'function' ? cost(input, init) : cost
      return acquirePermit(() => limiter.acquire(costs, { signal, wait: left, ...its }), signal)
    }
    let permit = await acquire(wait)
    for (let tries = 1; ; tries++) {
      // The caller gave up after the limiter had granted the permit.
      if (signal?.aborted) {
        await permit.refund()
        throw signal.reason
      }
      const isLast = tries > mostRetries
      let response: Response
      try {
        // The body of a request can be read only once, so a copy is sent if a retry may follow.
        response = await send(!isLast && input instanceof Request ? input.clone() : input, init)
        if (used) void settle(permit, used, response.clone())
        const now = Date.now()
        const pause = Math.min(pauseAskedFor(response.status, response.headers, now), longest)
        const isPaused = pause === 0 || (await pauseLimiter(limiter, now + pause))
        if (isLast || !isPaused || !saysWhenToRetry(response.status, response.headers, now)) return response
      } finally {
        await permit.release()
      }
      const left = until === undefined ? undefined : Math.max(until - systemClock.now(), 0)
      const next = await acquire(left).catch(() => undefined)
      if (!next && !signal?.aborted) return response
      // This frees the connection for the retry. A copy may still be read.
      void response.body?.cancel().catch(() => undefined)
      if (!next) throw signal!.reason
      permit = next
    }
  }
  return limited as Fetch
}

/** Whether the options permit a retry of a call, and its body can be sent again. */
function canRepeat(input: Input, init: RequestInit | undefined, anyMethod: boolean): boolean {
  const isRequest = input instanceof Request
  const method = init?.method ?? (isRequest ? input.method : 'GET')
  if (!anyMethod && !IDEMPOTENT.has(method.toUpperCase())) return false
  const { body } = init ?? {}
  return (
    typeof body !== 'object' ||
    body === null ||
    body instanceof ArrayBuffer ||
    ArrayBuffer.isView(body) ||
    [Blob, FormData, URLSearchParams].some(kind => body instanceof kind)
  )
}

function signalOf(input: Input, init: RequestInit | undefined): AbortSignal | undefined {
  // As in `fetch`: a signal passed with a request replaces the request's own, null included.
  if (init?.signal !== undefined) return init.signal ?? undefined
  return input instanceof Request ? input.signal : undefined
}

/** Waits for the permit of a call, or of a retry. */
async function acquirePermit(
  acquire: () => Promise<CallPermit>,
  signal: AbortSignal | undefined,
): Promise<CallPermit> {
  try {
    return await acquire()
  } catch (error) {
    signal?.throwIfAborted()
    throw withTaskBegan(error, false)
  }
}

/** Settles a permit by a copy of its response. */
async function settle(
  permit: CallPermit,
  used: NonNullable<LimitFetchOptions['used']>,
  response: Response,
): Promise<void> {
  try {
    const amounts = await used(response)
    if (amounts) permit.settle(amounts)
  } catch {
    // The amounts are not known, so the estimate stays.
  } finally {
    if (!response.bodyUsed) void response.body?.cancel().catch(() => undefined)
  }
}

/** Pauses the limiter, and returns whether that succeeded. A failed pause must not lose the answer of the service. */
async function pauseLimiter(limiter: CallLimiter, until: number): Promise<boolean> {
  try {
    await limiter.pauseUntil(until)
    return true
  } catch {
    // The next refusal will request the pause again.
    return false
  }
}
