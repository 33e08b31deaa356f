import { serializeList } from 'structured-headers'
import type { LimitReport } from '../../engine/limits/window.js'

/** A header field of an answer. */
export type Field = readonly [name: string, value: string]

/**
 * Returns the header fields of the IETF draft that report a caller's quota.
 * @param name the name of the policy. With several limits, the window of each is appended.
 */
export function rateLimitFields(name: string, limits: readonly LimitReport[]): readonly Field[] {
  return [
    ['RateLimit-Policy', list(name, limits, ({ limit, per }) => ({ q: limit, w: seconds(per) }))],
    ['RateLimit', list(name, limits, ({ remaining, resetIn }) => ({ r: remaining, t: seconds(resetIn) }))],
  ]
}

/** Whether a field is appended to one of the same name, which another limit may have set. Others replace it. */
export function isAdded([name]: Field): boolean {
  return name.startsWith('RateLimit')
}

/** Converts a time to wait to whole seconds, rounded up. */
export function seconds(milliseconds: number): number {
  return Math.ceil(milliseconds / 1000)
}

/**
 * Returns the name under which one of several limits is reported. Names are unique, even for limits with equal windows.
 */
export function policyName(name: string, limits: readonly LimitReport[], limit: LimitReport): string {
  if (limits.length === 1) return name
  const earlier = limits.filter(({ per }) => per === limit.per).indexOf(limit)
  return `${name}-${limit.per}ms${earlier > 0 ? `-${earlier + 1}` : ''}`
}

function list(
  name: string,
  limits: readonly LimitReport[],
  parameters: (limit: LimitReport) => Record<string, number>,
): string {
  return serializeList(
    limits.map(limit => [policyName(name, limits, limit), new Map(Object.entries(parameters(limit)))]),
  )
}
