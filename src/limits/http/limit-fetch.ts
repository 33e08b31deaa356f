import { aboutTask, InvalidArgumentError, shown } from '../../errors.js'
import { pauseAskedFor } from './pause.js'

/** What `limitFetch` needs of a limiter; all limiters of Signalbox and their keys have it. */
export interface CallLimiter {
  acquire(n?: number, options?: { signal?: AbortSignal }): Promise<CallPermit>
  pauseUntil(time: number): unknown
}

type Input = Parameters<typeof fetch>[0]

interface CallPermit {
  release(): unknown
  refund(): unknown
}

/**
 * A `fetch` whose calls each wait for a permit of the limiter, and that learns from the service's answers. A
 * `Retry-After` of an answer 429 or 503, and a quota that is used up by `RateLimit`, `RateLimit-Remaining` or
 * `X-RateLimit-Remaining`, pause the limiter until the service takes calls again, a day at the most. Answers are passed
 * on as they are, a 429, too; nothing is sent again.
 *
 * The permit is released when the head of the answer is there. A call whose signal aborts while it waits was never
 * sent: it is rejected with the signal's reason, as by `fetch`, and counts for nothing. Redirects that `fetch` follows
 * by itself are calls that the limiter does not see: give `redirect: 'manual'` where they count.
 * @throws InvalidArgumentError. The returned function throws what `fetch` throws, and what the limiter's `acquire`
 * throws, with a `taskBegan` of false: the call was not sent.
 */
export function limitFetch<Fetch extends typeof fetch>(send: Fetch, limiter: CallLimiter): Fetch {
  if (typeof send !== 'function') throw new InvalidArgumentError(`fetch takes a function, not ${shown(send)}`)
  if (typeof limiter?.acquire !== 'function') {
    throw new InvalidArgumentError(`limiter takes a limiter, not ${shown(limiter)}`)
  }
  const limited = async (input: Input, init?: RequestInit): Promise<Response> => {
    const signal = signalOf(input, init)
    const permit = await acquired(limiter, signal)
    // The limiter has given the permit, and the caller gave up before it could go on.
    if (signal?.aborted) {
      await permit.refund()
      throw signal.reason
    }
    try {
      const response = await send(input, init)
      const now = Date.now()
      const pause = pauseAskedFor(response.status, response.headers, now)
      if (pause > 0) await paused(limiter, now + pause)
      return response
    } finally {
      await permit.release()
    }
  }
  return limited as Fetch
}

function signalOf(input: Input, init: RequestInit | undefined): AbortSignal | undefined {
  // As in `fetch`: a signal given beside a request replaces the request's own, null included.
  if (init?.signal !== undefined) return init.signal ?? undefined
  return input instanceof Request ? input.signal : undefined
}

async function acquired(limiter: CallLimiter, signal: AbortSignal | undefined): Promise<CallPermit> {
  try {
    return await limiter.acquire(1, signal ? { signal } : {})
  } catch (error) {
    signal?.throwIfAborted()
    throw aboutTask(error, false)
  }
}

/** Pauses the limiter. The service has answered: a pause that could not be told to others must not lose its answer. */
async function paused(limiter: CallLimiter, until: number): Promise<void> {
  try {
    await limiter.pauseUntil(until)
  } catch {
    // The next answer will ask for it again.
  }
}
