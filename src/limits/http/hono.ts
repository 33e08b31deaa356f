import type { IncomingMessage, ServerResponse } from 'node:http'
import { isGone, releaseAfter } from './connect.js'
import {
  judge,
  type KeyedRequestLimiter,
  type RequestLimiter,
  type RequestOptions,
  type RequestPermit,
} from './request-limit.js'
import { isAdded } from './rate-limit-fields.js'

/**
 * The common part of Hono's contexts. To use variables of your application in `key`, name its type:
 * `limitHono<Context<AppEnv>>(...)`.
 */
export interface HonoContextLike {
  readonly req: {
    readonly raw: Request
    readonly method: string
    readonly path: string
    readonly url: string
    header(name: string): string | undefined
    param(name: string): string | undefined
    query(name: string): string | undefined
  }
  /** On `@hono/node-server`, the objects of `node:http`. */
  readonly env: unknown
  res: Response
  header(name: string, value: string, options: { append: boolean }): void
  body(data: string, status: number, headers: Record<string, string>): Response
}

/** Middleware for Hono. */
export type HonoMiddleware<Context> = (
  context: Context,
  next: () => Promise<void>,
) => Promise<Response | undefined>

/** The status that logs show for a response that can't be sent. */
const CLIENT_GONE = 499

/**
 * Returns middleware that limits the requests of a Hono app: `app.use(limitHono(limiter))`. Otherwise it does the same
 * as `limitRequests`. An error of `key` goes to the app's error handler. Where no response of `node:http` reports when
 * it has been sent, as with `app.request`, the permit is released when the body of the response has been read.
 * @throws InvalidArgumentError
 */
export function limitHono<Context extends HonoContextLike = HonoContextLike>(
  limiter: KeyedRequestLimiter,
  options?: RequestOptions<Context>,
): HonoMiddleware<Context>
export function limitHono<Context extends HonoContextLike = HonoContextLike>(
  limiter: RequestLimiter,
  options?: Omit<RequestOptions<Context>, 'key'>,
): HonoMiddleware<Context>
export function limitHono<Context extends HonoContextLike = HonoContextLike>(
  limiter: RequestLimiter,
  options?: RequestOptions<Context>,
): HonoMiddleware<Context> {
  const decide = judge(limiter, options)
  return async (context, next) => {
    const verdict = await decide(context)
    if (!verdict) {
      const { incoming } = nodeObjects(context)
      if (incoming && isGone(incoming)) return context.body('', CLIENT_GONE, {})
      await next()
      return undefined
    }
    const { fields, permit } = verdict
    if (!permit) return context.body(verdict.problem, verdict.status, Object.fromEntries(fields))
    const { outgoing } = nodeObjects(context)
    if (outgoing) {
      releaseAfter(outgoing, permit)
      await next()
      // The request was answered without the handlers, such as after a timeout.
      if (outgoing.headersSent) return undefined
    } else if (await callNextAndRelease(context, next, permit)) return undefined
    // Set now, because Hono drops earlier header fields if a handler returns a `Response` of its own.
    for (const field of fields) context.header(...field, { append: isAdded(field) })
    return undefined
  }
}

function nodeObjects({ env }: HonoContextLike): { incoming?: IncomingMessage; outgoing?: ServerResponse } {
  return env ?? {}
}

/**
 * Calls the handlers, and releases the permit when the body of the response has been read or can't be read any more.
 * Returns whether the body is on its way already.
 */
async function callNextAndRelease(
  context: HonoContextLike,
  next: () => Promise<void>,
  permit: RequestPermit,
): Promise<boolean> {
  const { method, raw } = context.req
  const release = (): void => void permit.release()
  if (raw.signal.aborted) release()
  else raw.signal.addEventListener('abort', release, { once: true })
  let body: ReadableStream<Uint8Array> | null = null
  try {
    await next()
    // To answer HEAD, Hono calls the handlers of GET and drops the body.
    if (method !== 'HEAD') ({ body } = context.res)
  } finally {
    // A locked body is on its way to the caller.
    if (!body || body.locked) release()
  }
  if (body?.locked) return true
  if (body) context.res = new Response(releaseAtEnd(body, permit), context.res)
  return false
}

/** The permits of bodies that will not be read, because other middleware has replaced the response. */
const dropped = new FinalizationRegistry<RequestPermit>(permit => void permit.release())

/** Returns the same body, whose end releases the permit. */
function releaseAtEnd(body: ReadableStream<Uint8Array>, permit: RequestPermit): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (!done) {
            controller.enqueue(value)
            return
          }
          controller.close()
        } catch (error) {
          controller.error(error)
        }
        await permit.release()
      },
      async cancel(reason) {
        void permit.release()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
  dropped.register(stream, permit)
  return stream
}
