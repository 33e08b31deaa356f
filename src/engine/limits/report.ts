import { ruleOf, type Limit } from './definition.js'
import { CONTENDS, endsAt, type LimiterState } from './reserve-permits.js'
import type { LimitReport } from './window.js'

/** A limiter in an engine, which all processes share. */
export interface KeptLimiter {
  /** Its name in the engine. */
  readonly limiter: string
  /** Milliseconds until the end of its pause; 0 if it is not paused. */
  readonly pausedFor: number
  /** The limits that a process uses, and those that no process uses any more, until their permits have returned. */
  readonly limits: readonly KeptLimit[]
  /** The sessions that had to wait for a permit in the last seconds. */
  readonly waiting: readonly string[]
}

/** A limit in an engine, with its count. */
export interface KeptLimit extends LimitReport {
  /** Number of permits that count now. It can exceed the limit, if callers that do not use this limit took some. */
  readonly used: number
  /** Whether it applies: whether a process has used it in the last five seconds. */
  readonly inForce: boolean
  /** The time zone of a calendar; empty for periods of equal length. */
  readonly timeZone: string
}

/**
 * Reports the state of a limiter; undefined if it no longer has any effect.
 * @param now the engine's clock, milliseconds. @param wall milliseconds since 1970.
 */
export function reportOf(
  limiter: string,
  state: LimiterState,
  now: number,
  wall: number,
): KeptLimiter | undefined {
  const limits = state.records.map((record): KeptLimit => {
    const { window, definition } = ruleOf(record.id)
    const time = window.wall ? wall : now
    const resetIn = window.returnsAt(record.state, time) - time
    return keptLimit(definition, window.used(record.state, time), resetIn, endsAt(record) >= now)
  })
  const waiting = Object.entries(state.contenders ?? {}).filter(([, seenAt]) => now - seenAt <= CONTENDS)
  return keptLimiter(
    limiter,
    state.pausedUntil - now,
    limits,
    waiting.map(([session]) => session),
  )
}

/** @param resetIn milliseconds. */
export function keptLimit(
  { kind: window, limit, per, timeZone, unit }: Limit,
  used: number,
  resetIn: number,
  inForce: boolean,
): KeptLimit {
  return { limit, per, window, unit, timeZone, inForce, used, remaining: Math.max(limit - used, 0), resetIn }
}

/**
 * Reports a limiter; undefined if it no longer has any effect. @param pausedFor milliseconds; 0 or less for no pause.
 */
export function keptLimiter(
  limiter: string,
  pausedFor: number,
  limits: readonly KeptLimit[],
  waiting: readonly string[],
): KeptLimiter | undefined {
  if (pausedFor <= 0 && waiting.length === 0 && limits.every(({ used }) => used <= 0)) return undefined
  return { limiter, pausedFor: Math.max(pausedFor, 0), limits, waiting }
}
