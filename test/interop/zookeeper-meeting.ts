import { randomUUID } from 'node:crypto'
import type { ZooKeeperServer } from '../support/servers/zookeeper.js'
import {
  curatorReader,
  curatorWriter,
  kazooReader,
  kazooWriter,
  ourReader,
  ourWriter,
  signalbox,
  type Kind,
  type Stay,
} from './client.js'
import { contest, type ContestResult } from './contest.js'
import type { Part } from './rounds.js'

const OURS = [signalbox, ourReader, ourWriter]
const READERS = [ourReader, curatorReader, kazooReader]

/** Clients of both sides of a read-write lock, by library. */
export const readWriteLocks = [
  { library: 'Curator', reader: curatorReader, writer: curatorWriter },
  { library: 'kazoo', reader: kazooReader, writer: kazooWriter },
]

interface Manner {
  /** Whether Signalbox creates nodes for clients that see only nodes with their own names. */
  readonly bridge?: boolean
  /** Time for which a round holds the lock, in milliseconds. */
  readonly hold?: number
}

/** Keeps empty containers, because kazoo fails if servers delete the node of a lock that it has used. */
export const KEEPING = { properties: { 'znode.container.checkIntervalMs': '3600000' } }

/**
 * Returns the overlaps of Signalbox with other clients, except those between readers. Ignores overlaps between Curator
 * and kazoo, which do not see each other.
 */
export function ofOurs({ overlaps }: ContestResult): ContestResult['overlaps'] {
  return overlaps.filter(pair => pair.some(isOf(OURS)) && !pair.every(isOf(READERS)))
}

/** Returns the number of overlaps between a reader of Signalbox and another reader. */
export function sharedWithOurs({ overlaps }: ContestResult): number {
  return overlaps.filter(pair => pair.some(isOf([ourReader])) && pair.every(isOf(READERS))).length
}

/** Returns the hand-overs between the sides of our read-write lock and these kinds, except those between readers. */
export function betweenSides(kinds: readonly Kind[], times: number): Map<string, number> {
  const wanted = new Map<string, number>()
  for (const ours of [ourReader, ourWriter])
    for (const theirs of kinds) {
      if ([ours, theirs].every(isOf(READERS))) continue
      wanted.set(`${ours.kind} > ${theirs.kind}`, times).set(`${theirs.kind} > ${ours.kind}`, times)
    }
  return wanted
}

function isOf(kinds: readonly Kind[]): (one: Pick<Kind | Stay, 'kind'>) => boolean {
  return one => kinds.some(({ kind }) => kind === one.kind)
}

/**
 * Runs clients that lock the same key in turn, until each hand-over in `wanted` has happened that often, or until the
 * limit is over.
 */
export function meetAtZooKeeper(
  { address }: ZooKeeperServer,
  kinds: readonly Kind[],
  wanted: ReadonlyMap<string, number>,
  limit: number,
  { bridge = false, hold = 1 }: Manner = {},
): Promise<ContestResult> {
  const key: string = randomUUID()
  const ours = { url: `zookeeper://${address}/place?sessionTimeout=20s&bridge=${bridge}`, name: key }
  const part = (kind: Kind): Part => {
    const theirs = partOf(address, key)
    return { ...theirs, ...(OURS.includes(kind) && ours), hold }
  }
  return contest({ clients: kinds.map(kind => [kind, part(kind)]), wanted, limit })
}

/** Returns settings with which another client uses the lock that Signalbox calls `key`. */
export function partOf(address: string, key: string): Part {
  return {
    url: address,
    // Other clients use the path of the node that contains Signalbox's queue of the key.
    name: `/place/locks/${key}`,
    lease: 60_000,
    renew: true,
    retry: 5,
    hold: 1,
    pause: 10,
    excludes: true,
  }
}
