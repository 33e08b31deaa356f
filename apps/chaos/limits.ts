import type { Guarantees } from 'signalbox'
import { milliseconds, urlParameters } from 'signalbox/engine'
import { MUTED, type FaultKind } from './plan.js'

/** Time allowed in addition to the lease or the session, in milliseconds. */
const GRACE = 1000
/**
 * Additional time for which an engine keeps a lease, by the scheme of its URL, in milliseconds. A Hazelcast cluster
 * looks once a second, and a box counts from the time at which it saw the lease there.
 */
const COUNTED_LATE: Readonly<Record<string, number>> = { hazelcast: 2000 }

/** Session timeout of ZooKeeper if the URL does not name one. */
const USUAL_SESSION = '10s'

/** Returns the session timeout of a ZooKeeper URL, in milliseconds; undefined for other engines. */
export function sessionOf(url: string): number | undefined {
  if (!url.startsWith('zookeeper')) return undefined
  const text = urlParameters(url.split('?')[1] ?? '').get('sessionTimeout') ?? USUAL_SESSION
  return milliseconds('sessionTimeout', /^\d+$/.test(text) ? Number(text) : text, {
    min: 1000,
    max: 3_600_000,
  })
}

/**
 * Returns the time after which an engine drops the grants of a silent client, in milliseconds: the lease, or the
 * session timeout if that is longer.
 */
export function silenceOf(url: string, lease: number): number {
  return Math.max(lease, sessionOf(url) ?? 0)
}

/**
 * Returns the maximum recovery time of others, or of the client itself, for each kind of fault, in milliseconds. While
 * replies are withheld, the engine still receives requests. Its time for a silent client begins when the client gives
 * up, so others get the client's keys later.
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
