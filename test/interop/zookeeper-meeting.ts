import { randomUUID } from 'node:crypto'
import type { ZooKeeperServer } from '../servers/zookeeper.js'
import { signalbox, type Kind } from './client.js'
import { contest, type ContestResult } from './contest.js'
import type { Part } from './rounds.js'

interface Manner {
  /** False in control runs: then nothing is locked. */
  readonly excludes?: boolean
  /** Whether Signalbox has nodes for kazoo. */
  readonly bridge?: boolean
}

/** kazoo takes the node of a lock that it has seen for permanent, but servers delete containers that are empty. */
export const KEEPING = { properties: { 'znode.container.checkIntervalMs': '3600000' } }

/** The overlaps that Signalbox had part in. Curator and kazoo do not see each other. */
export function ofOurs({ overlaps }: ContestResult): ContestResult['overlaps'] {
  return overlaps.filter(pair => pair.some(({ kind }) => kind === signalbox.kind))
}

/**
 * Lets clients that want the same lock come in by turns until all hand-overs that are named have happened so often, or
 * the limit is over.
 */
export function meetAtZooKeeper(
  { address }: ZooKeeperServer,
  kinds: readonly Kind[],
  wanted: ReadonlyMap<string, number>,
  limit: number,
  { excludes = true, bridge = false }: Manner = {},
): Promise<ContestResult> {
  const key: string = randomUUID()
  const ours = { url: `zookeeper://${address}/place?sessionTimeout=20s&bridge=${bridge}`, name: key }
  const part = (kind: Kind): Part => {
    const theirs = partOf(address, key)
    return { ...theirs, ...(kind === signalbox && ours), excludes }
  }
  return contest({ clients: kinds.map(kind => [kind, part(kind)]), wanted, limit })
}

/** What another client is told so that it means the lock that Signalbox calls `key`. */
export function partOf(address: string, key: string): Part {
  return {
    url: address,
    // Others name the node under which Signalbox keeps the queue of a key.
    name: `/place/locks/${key}`,
    lease: 60_000,
    renew: true,
    retry: 5,
    hold: 1,
    pause: 10,
    excludes: true,
  }
}
