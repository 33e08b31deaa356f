import { createHash } from 'node:crypto'
import { InvalidArgumentError, shown } from '../../base/errors.js'
import { PROBLEM_TYPE, problemOf } from '../../http/problem.js'
import { checkOptions, isKey } from '../../base/options.js'
import type { Explanation } from '../limiter.js'
import type { LimitReport } from '../../engine/limits/window.js'
import { TOO_MANY_REQUESTS } from './pause.js'
import { policyName, rateLimitFields, seconds, type Field } from './rate-limit-fields.js'

/** A limiter, as far as a limit of requests needs it. All limiters of Signalbox and their keys match it. */
export interface RequestLimiter {
  decide(): RequestDecision | Promise<RequestDecision>
}

/** The decision about a request, and the state of the limiter at the same moment. */
export interface RequestDecision {
  readonly permit: RequestPermit | undefined
  /** The state for the next request; undefined if it is not known. */
  readonly explanation: Explanation | undefined
}

/** A limiter with a limiter for each key. */
export interface KeyedRequestLimiter extends RequestLimiter {
  key(key: string): RequestLimiter
}

export interface RequestPermit {
  release(): unknown
}

/** Options of a limit of incoming requests. */
export interface RequestOptions<Request> {
  /**
   * Returns the sender of a request, such as a user name or an address. A text of more than 200 characters is replaced
   * by its hash. Each sender has the whole limit for itself. A request for which this returns undefined is not limited;
   * it is not served if its client has reset the connection. Default: all requests share one limit.
   */
  key?: ((request: Request) => string | undefined) | undefined
  /** The name of the limit in response headers; default `'default'`. */
  name?: string | undefined
}

/** The decision about a request, with header fields for the response. */
export type Verdict = { readonly fields: readonly Field[] } & (
  | {
      /** Released when the response has been sent. */
      readonly permit: RequestPermit
    }
  | {
      readonly permit?: undefined
      readonly status: number
      /** The body, `application/problem+json`. */
      readonly problem: string
    }
)

/** Decides about a request; undefined if it is not limited. */
export type Judge<Request> = (request: Request) => Promise<Verdict | undefined>

/** The problem type of the IETF draft. */
const QUOTA_EXCEEDED = 'https://iana.org/assignments/http-problem-types#quota-exceeded'
/** Maximum length of a key. The limit of an engine includes the name of the limiter. */
const MAX_LENGTH = 200
/** Minimum `Retry-After` of a refusal, in seconds. */
const MIN_RETRY_AFTER = 1

/** Returns a function that decides about requests. @throws InvalidArgumentError */
export function judge<Request>(
  limiter: RequestLimiter | KeyedRequestLimiter,
  options: RequestOptions<Request> = {},
): Judge<Request> {
  if (typeof limiter?.decide !== 'function') {
    throw new InvalidArgumentError(`limiter must be a limiter, not ${shown(limiter)}`)
  }
  checkOptions(options, ['key', 'name'])
  const { key, name = 'default' } = options
  // The header allows only printable ASCII.
  if (typeof name !== 'string' || !/^[\x20-\x7e]{1,100}$/.test(name)) {
    throw new InvalidArgumentError(`name must be 1 to 100 printable ASCII characters, not ${shown(name)}`)
  }
  if (key === undefined) return () => verdict(limiter, name)
  if (typeof key !== 'function') throw new InvalidArgumentError(`key must be a function, not ${shown(key)}`)
  if (!('key' in limiter)) throw new InvalidArgumentError('key needs a limiter that has keys')
  return async request => {
    const own = key(request)
    return own === undefined ? undefined : verdict(limiter.key(fitted(own)), name)
  }
}

/** Replaces an invalid or long key by its hash, because senders can choose any text, such as a long token. */
function fitted(key: string): string {
  if (typeof key !== 'string' || (isKey(key) && key.length <= MAX_LENGTH)) return key
  // UTF-16, because UTF-8 has the same code for all halves of surrogate pairs.
  return createHash('sha256').update(key, 'utf16le').digest('base64url')
}

async function verdict(limiter: RequestLimiter, name: string): Promise<Verdict> {
  try {
    return verdictOf(await limiter.decide(), name)
  } catch (error) {
    const problem = problemOf(error)
    if (!problem) throw error
    const { status, headers, document } = problem
    return { fields: Object.entries(headers), status, problem: JSON.stringify(document) }
  }
}

function verdictOf({ permit, explanation }: RequestDecision, name: string): Verdict {
  if (permit) {
    return { fields: explanation ? rateLimitFields(name, explanation.limits) : [], permit }
  }
  const retry = Math.max(seconds(explanation?.readyIn ?? 0), MIN_RETRY_AFTER)
  const fields = explanation ? rateLimitFields(name, refusedBy(explanation, retry)) : []
  return {
    fields: [...fields, ['Retry-After', String(retry)], ['Content-Type', PROBLEM_TYPE]],
    status: TOO_MANY_REQUESTS,
    problem: problem(name, explanation),
  }
}

/**
 * Returns the limits for a refused caller. The limit that refused it has 0 remaining. If the caller waits for something
 * else, such as the end of a pause, all limits have 0 remaining.
 */
function refusedBy({ waitsFor, binding, limits }: Explanation, retry: number): readonly LimitReport[] {
  const isLimit = waitsFor === 'limit' && binding !== undefined
  return limits.map(limit =>
    isLimit && limit !== binding ? limit : { ...limit, remaining: 0, resetIn: 1000 * retry },
  )
}

function problem(name: string, explanation: Explanation | undefined): string {
  const { binding, limits = [] } = explanation ?? {}
  return JSON.stringify({
    type: QUOTA_EXCEEDED,
    title: 'Too many requests',
    status: TOO_MANY_REQUESTS,
    ...(binding && { 'violated-policies': [policyName(name, limits, binding)] }),
  })
}
