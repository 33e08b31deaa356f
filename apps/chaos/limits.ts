import type { Guarantees } from 'signalbox'
import type { FaultKind } from './plan.js'

/** What is allowed beyond the lease or the session: milliseconds. */
const GRACE = 1000
/** A Hazelcast cluster looks once a second, and so does who counts from what it saw there: milliseconds. */
const COUNTED_LATE = 2000
const DEFAULT_SESSION = 10_000

/** How long what an engine gave outlives silence: the lease, or the session where that is what counts. */
export function silenceOf(url: string, lease: number): number {
  if (!/^zookeeper/.test(url)) return lease
  const [, amount, unit] = /[?&]sessionTimeout=(\d+)(ms|s)?/.exec(url) ?? []
  const session = amount === undefined ? DEFAULT_SESSION : Number(amount) * (unit === 's' ? 1000 : 1)
  return Math.max(lease, session)
}

/** How long after each kind of fault others, or the client itself, have to go on: milliseconds. */
export function recoveryLimits(
  url: string,
  lease: number,
  kinds: readonly FaultKind[],
  deadHolder: Guarantees['deadHolder'],
): Record<string, number> {
  const late = url.startsWith('hazelcast:') ? COUNTED_LATE : 0
  const limit = silenceOf(url, lease) + GRACE + late
  return Object.fromEntries(
    kinds.map(kind => [kind, kind === 'kill' && deadHolder === 'at once' ? GRACE : limit]),
  )
}
