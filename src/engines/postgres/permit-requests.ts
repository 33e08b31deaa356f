import type { Reserved, ReservePermits, Unit } from '../../engine/limits/reservation.js'

/** A request that a box has left for the next box that decides the limiter. */
export interface PermitRequest {
  /** The time at which it was left, by the server's clock. */
  readonly since: number
  readonly id: string
  readonly request: ReservePermits
}

type LeftRequest = Omit<ReservePermits, 'limiter' | 'units'> & {
  readonly runs: readonly (readonly [unit: Unit, count: number])[]
}

/** Maximum number of units of a request, so that a damaged one does not use up the memory. */
const MAX_UNITS = 100_000

/** Returns a request as text, without its limiter. Equal units that follow each other are written once. */
export function requestText({ limiter: _, units, ...request }: ReservePermits): string {
  const runs: [unit: Unit, count: number][] = []
  for (const unit of units) {
    const last = runs.at(-1)
    if (last?.[0] === unit) last[1]++
    else runs.push([unit, 1])
  }
  return JSON.stringify({ ...request, runs }, withInfinityAsText)
}

/**
 * Reads a request; undefined if it is damaged, or of another version. Equal units that follow each other are the same
 * object, so each is decided once.
 */
export function requestOf(limiter: string, text: string): ReservePermits | undefined {
  try {
    const { runs, ...request } = JSON.parse(text, withInfinityFromText) as LeftRequest
    if (runs.reduce((sum, [, count]) => sum + count, 0) > MAX_UNITS) return undefined
    return {
      ...request,
      limiter,
      units: runs.flatMap(([unit, count]) => Array.from({ length: count }, () => unit)),
    }
  } catch {
    return undefined
  }
}

/** Returns the answer to a request as text. */
export function answerText(reserved: Reserved): string {
  return JSON.stringify(reserved, withInfinityAsText)
}

export function answerOf(text: string): Reserved {
  return JSON.parse(text, withInfinityFromText) as Reserved
}

function withInfinityAsText(_: string, value: unknown): unknown {
  return value === Infinity || value === -Infinity ? String(value) : value
}

function withInfinityFromText(_: string, value: unknown): unknown {
  return value === 'Infinity' || value === '-Infinity' ? Number(value) : value
}
