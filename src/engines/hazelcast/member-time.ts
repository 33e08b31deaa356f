import type { IMap } from 'hazelcast-client'
import type { Clock } from '../../clock.js'
import { answered } from './call.js'

/** One key, so that one member answers all processes. */
const KEY = 'signalbox-clock'
/** The life of the entry whose end shows the time of a member: milliseconds. */
const LIFE = 60_000
/** Members keep times in whole seconds. */
export const PRECISION = 1000

/**
 * The clock of a member, to half a second: milliseconds since 1970, at some time during this call.
 * @throws what the client throws
 */
export async function memberTime(map: IMap<string, string>, clock: Clock): Promise<number> {
  await answered(map.set(KEY, '', LIFE), clock)
  const { expirationTime } = await answered(map.getEntryView(KEY), clock)
  return expirationTime.toNumber() - LIFE + PRECISION / 2
}
