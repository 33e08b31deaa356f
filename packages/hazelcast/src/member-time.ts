import type { IMap } from 'hazelcast-client'
import type { Clock } from 'signalbox/engine'
import { answered } from './call.js'

/** A single key, so that the same member answers all processes. */
const KEY = 'signalbox-clock'
/** TTL of the entry whose expiration shows the time of a member, in milliseconds. */
const TTL = 60_000
/** Members keep times in whole seconds. In milliseconds. */
export const PRECISION = 1000

/**
 * Returns the clock of a member at some time during this call, in milliseconds since 1970, accurate to half a second.
 * @throws errors of the client
 */
export async function memberTime(map: IMap<string, string>, clock: Clock): Promise<number> {
  await answered(map.set(KEY, '', TTL), clock)
  const { expirationTime } = await answered(map.getEntryView(KEY), clock)
  return expirationTime.toNumber() - TTL + PRECISION / 2
}
