import { randomUUID } from 'node:crypto'
import { TEST_CLUSTER, type HazelcastServer } from '../support/servers/hazelcast.js'
import { javaMap, signalbox } from './client.js'
import { contest, type ContestResult } from './contest.js'

/**
 * Runs two processes of each kind that lock the same key of the same IMap in turn, until each hand-over in `wanted` has
 * happened that often, or until the limit is over.
 */
export function meetAtHazelcast(
  { address }: HazelcastServer,
  wanted: ReadonlyMap<string, number>,
  limit: number,
): Promise<ContestResult> {
  const name: string = randomUUID()
  const place = `${address}/${TEST_CLUSTER}`
  const part = { name, lease: 60_000, renew: true, retry: 5, hold: 1, pause: 10, excludes: true }
  const ours = [signalbox, { ...part, url: `hazelcast://${place}?map=shared` }] as const
  const theirs = [javaMap, { ...part, url: `${place}/shared` }] as const
  return contest({ clients: [ours, ours, theirs, theirs], wanted, limit })
}
