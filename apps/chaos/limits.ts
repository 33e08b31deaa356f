import type { Guarantees } from 'signalbox'
import { milliseconds, urlParameters } from 'signalbox/engine'
import { MUTED, type FaultKind } from './plan.js'

/** What is allowed beyond the lease or the session, in milliseconds. */
const GRACE = 1000
/**
 * How much longer an engine keeps a lease for others, by the scheme of its URL, in milliseconds. A Hazelcast cluster
 * looks once a second, and a box counts from what it saw there.
 */
const COUNTED_LATE: Readonly<Record<string, number>> = { hazelcast: 2000 }

/** How long a session of ZooKeeper outlives silence where the URL does not say it. */
const USUAL_SESSION = '10s'

/** The session time-out that the URL of ZooKeeper asks for, in milliseconds. */
export function sessionOf(url: string): number | undefined {
  if (!url.startsWith('zookeeper')) return undefined
  const text = urlParameters(url.split('?')[1] ?? '').get('sessionTimeout') ?? USUAL_SESSION
  return milliseconds('sessionTimeout', /^\d+$/.test(text) ? Number(text) : text, {
    min: 1000,
    max: 3_600_000,
  })
}

/** How long what an engine gave outlives silence: the lease, or the session where that is what counts. */
export function silenceOf(url: string, lease: number): number {
  return Math.max(lease, sessionOf(url) ?? 0)
}

/**
 * How long after each kind of fault others, or the client itself, must continue, in milliseconds. An engine learns of a
 * client whose replies are withheld until that gives up, and only then does its silence begin: what it held others get
 * later.
 */
export function recoveryLimits(
  url: string,
  lease: number,
  kinds: readonly FaultKind[],
  deadHolder: Guarantees['deadHolder'],
): Record<string, number> {
  const late = COUNTED_LATE[url.split(':')[0]!] ?? 0
  const limit = silenceOf(url, lease) + GRACE + late
  return Object.fromEntries(
    kinds.flatMap(kind => {
      const own = [kind, kind === 'kill' && deadHolder === 'at once' ? GRACE : limit] as const
      return MUTED.has(kind) ? [own, [`${kind}, others`, limit + silenceOf(url, lease)] as const] : [own]
    }),
  )
}
