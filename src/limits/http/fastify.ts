import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { isGone, releaseAfter } from './connect.js'
import { isAdded } from './rate-limit-fields.js'
import { judge, type KeyedRequestLimiter, type RequestLimiter, type RequestOptions } from './request-limit.js'

/** The common part of Fastify's requests. Use another type for more: `limitFastify<FastifyRequest>(...)`. */
export interface FastifyRequestLike {
  readonly id: string
  readonly ip: string
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly params: unknown
  readonly query: unknown
  readonly raw: IncomingMessage
}

/** Fastify's reply, as far as it is needed here. */
interface Reply {
  readonly raw: ServerResponse
  code(status: number): unknown
  header(name: string, value: string): unknown
  getHeader(name: string): unknown
  send(payload: string): unknown
  hijack(): unknown
}

/** The type itself, but not for the compiler's inference: `NoInfer` of TypeScript 5.4, for earlier versions. */
type NotInferred<T> = [T][T extends unknown ? 0 : never]

/** A hook for Fastify's `onRequest` or a later one before the handler. */
export type FastifyHook<Request> = (request: Request, reply: Reply) => Promise<unknown>

/**
 * Returns a hook that limits the requests of a Fastify server, a plugin or one route: `server.addHook('onRequest',
 * limitFastify(limiter))`. Otherwise it does the same as `limitRequests`. An error of `key` goes to the server's error
 * handler.
 * @throws InvalidArgumentError
 */
export function limitFastify<Request extends FastifyRequestLike = FastifyRequestLike>(
  limiter: KeyedRequestLimiter,
  options?: RequestOptions<Request>,
): FastifyHook<NotInferred<Request>>
export function limitFastify<Request extends FastifyRequestLike = FastifyRequestLike>(
  limiter: RequestLimiter,
  options?: Omit<RequestOptions<Request>, 'key'>,
): FastifyHook<NotInferred<Request>>
export function limitFastify<Request extends FastifyRequestLike = FastifyRequestLike>(
  limiter: RequestLimiter,
  options?: RequestOptions<Request>,
): FastifyHook<Request> {
  const decide = judge(limiter, options)
  return async (request, reply) => {
    const verdict = await decide(request)
    if (!verdict) {
      if (!isGone(request.raw)) return undefined
      reply.hijack()
      return reply
    }
    for (const field of verdict.fields) {
      const [name, value] = field
      const present = reply.getHeader(name)
      reply.header(name, typeof present === 'string' && isAdded(field) ? `${present}, ${value}` : value)
    }
    if (verdict.permit) {
      releaseAfter(reply.raw, verdict.permit)
      return undefined
    }
    reply.code(verdict.status)
    reply.send(verdict.problem)
    return reply
  }
}
