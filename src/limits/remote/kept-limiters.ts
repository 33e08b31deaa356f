import type { Engine } from '../../engine/contract.js'
import type { KeptLimit } from '../../engine/limits/report.js'

/** A limiter that all processes share, or one of its keys, as `Box.limiters` shows it. */
export interface LimiterReport {
  readonly name: string
  /** The key; undefined for the limiter itself. */
  readonly key: string | undefined
  /** Milliseconds until the end of its pause; 0 if it is not paused. */
  readonly pausedFor: number
  /** The limits that a process uses, and those that no process uses any more, until their permits have returned. */
  readonly limits: readonly KeptLimit[]
  /** The sessions that had to wait for a permit in the last seconds. */
  readonly waiting: readonly string[]
}

/** Lists the limiters that have permits in use, are paused or have waiters, in the order of name and key. */
export async function keptLimiters(engine: Engine, prefix: string): Promise<LimiterReport[]> {
  const kept = await engine.limiters?.(id => limiterOf(id).name.startsWith(prefix))
  const reports = (kept ?? []).map(({ limiter, ...report }) => ({ ...limiterOf(limiter), ...report }))
  // No name or key contains NUL.
  const place = ({ name, key = '' }: LimiterReport): string => `${name}\0${key}`
  return reports.sort((one, other) => (place(one) < place(other) ? -1 : 1))
}

/** Ends the pauses of a limiter and its keys, or of one key. Returns the number of pauses that it has ended. */
export async function resumeLimiters(
  engine: Engine,
  session: string,
  name: string,
  key: string | undefined,
): Promise<number> {
  const isMeant = (id: string): boolean => {
    const its = limiterOf(id)
    return its.name === name && (key === undefined || its.key === key)
  }
  const paused = ((await engine.limiters?.(isMeant)) ?? []).filter(({ pausedFor }) => pausedFor > 0)
  const nothing = { windows: [], units: [], horizon: 0, hold: 0, returns: [], explain: undefined }
  await Promise.all(
    paused.map(async ({ limiter }) => engine.reservePermits!({ limiter, session, ...nothing, pause: 0 })),
  )
  return paused.length
}

/**
 * The ID of a limiter in an engine. The length comes before the name, so that no other name and key have the same ID.
 * @param key undefined for the limiter itself
 */
export function limiterId(name: string, key: string | undefined): string {
  return `${name.length}:${name}${key === undefined ? '' : `:${key}`}`
}

/** The name and the key of such an ID. */
function limiterOf(id: string): { readonly name: string; readonly key: string | undefined } {
  const start = id.indexOf(':') + 1
  const end = start + Number(id.slice(0, start - 1))
  return { name: id.slice(start, end), key: end < id.length ? id.slice(end + 1) : undefined }
}
