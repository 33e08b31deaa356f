import { serializeList } from 'structured-headers'
import type { LimitReport } from '../../engine/limits/window.js'

/** A header field of an answer. */
export type Field = readonly [name: string, value: string]

/**
 * The header fields of the IETF's draft that report a caller's quota.
 * @param name of the policy; where there are several limits, each adds its window.
 */
export function rateLimitFields(name: string, limits: readonly LimitReport[]): readonly Field[] {
  return [
    ['RateLimit-Policy', list(name, limits, ({ limit, per }) => ({ q: limit, w: seconds(per) }))],
    ['RateLimit', list(name, limits, ({ remaining, resetIn }) => ({ r: remaining, t: seconds(resetIn) }))],
  ]
}

/** Whether a field adds to one of the same name, which another limit may have set: others replace it. */
export function isAdded([name]: Field): boolean {
  return name.startsWith('RateLimit')
}

/** Whole seconds, never too few. @param milliseconds a time to wait. */
export function seconds(milliseconds: number): number {
  return Math.ceil(milliseconds / 1000)
}

/** The name under which one of several limits is reported. */
export function policyName(name: string, limits: readonly LimitReport[], limit: LimitReport): string {
  return limits.length === 1 ? name : `${name}-${limit.per}ms`
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
