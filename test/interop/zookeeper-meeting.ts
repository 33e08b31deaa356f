import { randomUUID } from 'node:crypto'
import type { ZooKeeperServer } from '../servers/zookeeper.js'
import { signalbox, type Kind } from './client.js'
import { contest, type ContestResult } from './contest.js'

/**
 * Lets clients that want the same lock come in by turns until all hand-overs that are named have happened so often, or
 * the limit is over.
 */
export function meetAtZooKeeper(
  { address }: ZooKeeperServer,
  kinds: readonly Kind[],
  wanted: ReadonlyMap<string, number>,
  limit: number,
  excludes = true,
): Promise<ContestResult> {
  const key: string = randomUUID()
  const part = (kind: Kind) => ({
    url: kind === signalbox ? `zookeeper://${address}/place?sessionTimeout=20s` : address,
    // Others name the node under which Signalbox keeps the queue of a key.
    name: kind === signalbox ? key : `/place/locks/${key}`,
    lease: 60_000,
    renew: true,
    retry: 5,
    hold: 1,
    pause: 10,
    excludes,
  })
  return contest({ clients: kinds.map(kind => [kind, part(kind)]), wanted, limit })
}
