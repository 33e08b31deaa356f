import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import {
  judge,
  type KeyedRequestLimiter,
  type RequestLimiter,
  type RequestOptions,
  type RequestPermit,
  type Verdict,
} from './request-limit.js'
import { isAdded } from './rate-limit-fields.js'

/** Middleware for Express, Connect and similar frameworks. */
export type Middleware<Request extends IncomingMessage = IncomingMessage> = (
  request: Request,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void

/**
 * Returns middleware that limits incoming requests. Every response shows the limit in `RateLimit-Policy` and
 * `RateLimit`. A request above the limit is answered 429 with `Retry-After`, and later handlers are not called. The
 * permit is released when the response has been sent or the connection has closed. While the engine of a box's limiter
 * is unreachable, its `onUnavailable` applies, and responses do not show a limit. If the limiter fails, the answer is
 * that of `problemOf` of `signalbox/http`. An error of `key` is passed to `next`.
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
  const decide = judge(limiter, options)
  return (request, response, next) => {
    decide(request)
      .then(verdict => (verdict ? admitted(verdict, response) : !isGone(request)))
      .then(goesOn => {
        if (goesOn) next()
      }, next)
  }
}

/** Whether the request may continue; otherwise answers it. */
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

/**
 * Whether the client has reset the connection, so that its address can't be read. Without this check, clients that do
 * so would pass a limit whose key is the address.
 */
export function isGone({ socket }: { readonly socket?: Partial<Socket> | undefined }): boolean {
  if (!socket) return false
  if (socket.destroyed) return true
  // A Unix domain socket has no addresses.
  return socket.localAddress !== undefined && socket.remoteAddress === undefined
}

/** Releases a permit when the response, of HTTP/1 or HTTP/2, has been sent, or can't be sent any more. */
export function releaseAfter(
  response: ServerResponse & { readonly stream?: { readonly closed: boolean } },
  permit: RequestPermit,
): void {
  // A response of HTTP/2 does not say that it is closed; its stream does.
  if (response.closed || response.stream?.closed) void permit.release()
  else response.once('close', () => void permit.release())
}
