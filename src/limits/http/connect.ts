import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  judge,
  type KeyedRequestLimiter,
  type RequestLimiter,
  type RequestOptions,
  type Verdict,
} from './request-limit.js'
import { isAdded } from './rate-limit-fields.js'

/** Middleware as Express, Connect and many others take it. */
export type Middleware<Request extends IncomingMessage = IncomingMessage> = (
  request: Request,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void

/**
 * Middleware that limits incoming requests. Every response shows the limit in `RateLimit-Policy` and `RateLimit`; a
 * request above it is answered 429 with `Retry-After` and goes no further. A permit is released when the answer has
 * been sent or the connection has closed. While the engine of a box's limiter can't be asked, its `onUnavailable`
 * decides, and responses do not show a limit. A request that meets an error of the limiter is answered as `problemOf`
 * of `signalbox/http` says; what `key` throws goes to `next`.
 * @throws InvalidArgumentError
 */
export function limitRequests<Request extends IncomingMessage = IncomingMessage>(
  limiter: KeyedRequestLimiter,
  options?: RequestOptions<Request>,
): Middleware<Request>
export function limitRequests<Request extends IncomingMessage = IncomingMessage>(
  limiter: RequestLimiter,
  options?: Omit<RequestOptions<Request>, 'key'>,
): Middleware<Request>
export function limitRequests<Request extends IncomingMessage>(
  limiter: RequestLimiter,
  options?: RequestOptions<Request>,
): Middleware<Request> {
  const judged = judge(limiter, options)
  return (request, response, next) => {
    judged(request)
      .then(verdict => !verdict || admitted(verdict, response))
      .then(
        goesOn => {
          if (goesOn) next()
        },
        (error: unknown) => next(error),
      )
  }
}

/** Whether the request may continue; otherwise it is answered. */
function admitted(verdict: Verdict, response: ServerResponse): boolean {
  for (const field of verdict.fields) {
    if (isAdded(field)) response.appendHeader(...field)
    else response.setHeader(...field)
  }
  if (verdict.permit) {
    releaseAfter(response, verdict.permit)
    return true
  }
  response.statusCode = verdict.status
  response.end(verdict.problem)
  return false
}

/** Releases a permit when the answer has been sent, or can't be sent any more. */
export function releaseAfter(response: ServerResponse, permit: NonNullable<Verdict['permit']>): void {
  if (response.closed) void permit.release()
  else response.once('close', () => void permit.release())
}
