import { parseDictionary, parseList } from 'structured-headers'

/** The headers of an answer. */
type HeaderFields = Pick<Headers, 'get'>

/** A reset above this is in seconds since 1970; below, in seconds from now. */
const MIN_TIME = 1e9
/** A reset above this is in milliseconds since 1970. */
const MIN_MILLISECONDS = 1e12

/** The quotas of OpenAI and Anthropic. */
const UNITS = ['requests', 'tokens', 'input-tokens', 'output-tokens']
const SPAN = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

export const TOO_MANY_REQUESTS = 429
const UNAVAILABLE = 503

/**
 * Returns the time for which an answer asks its caller to send nothing, in milliseconds; 0 if it does not.
 * @param now milliseconds since 1970.
 */
export function pauseAskedFor(status: number, headers: HeaderFields, now: number): number {
  // A refusal with a `Retry-After` needs nothing else; otherwise the caller waits for every quota that is used up.
  return (isRefusal(status) ? retryAfter(headers, now) : undefined) ?? untilQuota(headers, now)
}

/** Whether an answer is a refusal with a `Retry-After`. */
export function saysWhenToRetry(status: number, headers: HeaderFields, now: number): boolean {
  return isRefusal(status) && retryAfter(headers, now) !== undefined
}

function isRefusal(status: number): boolean {
  return status === TOO_MANY_REQUESTS || status === UNAVAILABLE
}

/** Returns the milliseconds until a retry; undefined if the header is absent or invalid. */
function retryAfter(headers: HeaderFields, now: number): number | undefined {
  const text = headers.get('retry-after')?.trim() ?? ''
  if (/^\d+$/.test(text)) return Number(text) * 1000
  const time = /^[A-Z][a-z]{2,8},? /.test(text) ? Date.parse(text) : NaN
  if (Number.isNaN(time)) return undefined
  // By the clock of the service if the answer contains its time, because the clock here may be wrong.
  const sent = Date.parse(headers.get('date') ?? '')
  return Math.max(time - (Number.isNaN(sent) ? now : sent), 0)
}

/** Returns the milliseconds until no quota that a service reports is used up. */
function untilQuota(headers: HeaderFields, now: number): number {
  const listed = headers.get('ratelimit')
  if (listed !== null) return Math.max(0, ...structured(listed))
  for (const prefix of ['ratelimit', 'x-ratelimit', 'x-rate-limit']) {
    const remaining = firstNumber(headers.get(`${prefix}-remaining`))
    const reset = firstNumber(headers.get(`${prefix}-reset`))
    if (remaining !== undefined && reset !== undefined) return remaining > 0 ? 0 : untilReset(reset, now)
  }
  return Math.max(...UNITS.map(unit => untilUnit(headers, unit, now)))
}

/**
 * Returns the milliseconds until a quota of a model provider is not used up: `x-ratelimit-reset-tokens: 6m0s` of
 * OpenAI, or `anthropic-ratelimit-tokens-reset: 2026-01-01T00:00:00Z`.
 */
function untilUnit(headers: HeaderFields, unit: string, now: number): number {
  const isUsedUp = (name: string): boolean => firstNumber(headers.get(name)) === 0
  if (isUsedUp(`x-ratelimit-remaining-${unit}`)) {
    const spans = [
      ...(headers.get(`x-ratelimit-reset-${unit}`) ?? '').matchAll(/(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h)/g),
    ]
    return (
      spans.reduce((sum, [, count, span]) => sum + Number(count) * SPAN[span as keyof typeof SPAN], 0) || 0
    )
  }
  if (!isUsedUp(`anthropic-ratelimit-${unit}-remaining`)) return 0
  return Math.max(Date.parse(headers.get(`anthropic-ratelimit-${unit}-reset`) ?? '') - now, 0) || 0
}

/** Parses `"name";r=0;t=5`, or `limit=10, remaining=0, reset=5` as in older drafts of the header. */
function structured(text: string): readonly number[] {
  try {
    return parseList(text).map(([, parameters]) => wait(parameters.get('r'), parameters.get('t')))
  } catch {
    // It may be of an older draft.
  }
  try {
    const members = parseDictionary(text)
    return [wait(members.get('remaining')?.[0], members.get('reset')?.[0])]
  } catch {
    // A header that can't be parsed is ignored.
    return []
  }
}

/** @param reset seconds from now. */
function wait(remaining: unknown, reset: unknown): number {
  const isUsedUp = typeof remaining === 'number' && typeof reset === 'number' && remaining <= 0
  return isUsedUp ? reset * 1000 : 0
}

/**
 * Returns the milliseconds until a reset. Services use seconds from now, seconds since 1970, or milliseconds since
 * 1970.
 */
function untilReset(reset: number, now: number): number {
  if (reset < MIN_TIME) return reset * 1000
  return Math.max((reset < MIN_MILLISECONDS ? reset * 1000 : reset) - now, 0)
}

/** Returns the first number. Some services append the window, after a comma or semicolon. */
function firstNumber(text: string | null): number | undefined {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(?:[,;].*)?$/.exec(text ?? '')
  return match ? Number(match[1]) : undefined
}
