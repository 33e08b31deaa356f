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

/** The two sides of a read-write lock, by library. */
export const readWriteLocks = [
  { library: 'Curator', reader: curatorReader, writer: curatorWriter },
  { library: 'kazoo', reader: kazooReader, writer: kazooWriter },
]

interface Manner {
  /** False in control runs: then nothing is locked. */
  readonly excludes?: boolean
  /** Whether Signalbox has nodes for locks that count only their own. */
  readonly bridge?: boolean
  /** How long a round stays inside: milliseconds. */
  readonly hold?: number
}

/** kazoo takes the node of a lock that it has seen for permanent, but servers delete containers that are empty. */
export const KEEPING = { properties: { 'znode.container.checkIntervalMs': '3600000' } }

/**
 * The overlaps that Signalbox had part in, without those of two readers, which share. Curator and kazoo do not see each
 * other.
 */
export function ofOurs({ overlaps }: ContestResult): ContestResult['overlaps'] {
  return overlaps.filter(pair => pair.some(isOf(OURS)) && !pair.every(isOf(READERS)))
}

/** Minimum number of times that a reader of Signalbox and another one were inside at once. */
export function sharedWithOurs({ overlaps }: ContestResult): number {
  return overlaps.filter(pair => pair.some(isOf([ourReader])) && pair.every(isOf(READERS))).length
}

/** The hand-overs between the sides of our read-write lock and these, without those of two readers, which share. */
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
 * Lets clients that want the same lock come in by turns until all hand-overs that are named have happened so often, or
 * the limit is over.
 */
export function meetAtZooKeeper(
  { address }: ZooKeeperServer,
  kinds: readonly Kind[],
  wanted: ReadonlyMap<string, number>,
  limit: number,
  { excludes = true, bridge = false, hold = 1 }: Manner = {},
): Promise<ContestResult> {
  const key: string = randomUUID()
  const ours = { url: `zookeeper://${address}/place?sessionTimeout=20s&bridge=${bridge}`, name: key }
  const part = (kind: Kind): Part => {
    const theirs = partOf(address, key)
    return { ...theirs, ...(OURS.includes(kind) && ours), excludes, hold }
  }
  return contest({ clients: kinds.map(kind => [kind, part(kind)]), wanted, limit })
}

/** The settings of another client so that it means the lock that Signalbox calls `key`. */
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
