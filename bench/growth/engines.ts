import { open, type Box } from 'signalbox'
import type { Proxy } from '../../apps/chaos/servers/proxy.js'
import { TEST_CLUSTER } from '../../test/support/servers/hazelcast.js'
import { toldAddress } from '../lockers/address-file.js'
import { curator } from '../lockers/curator.js'
import { mapLockAlone, writtenMapLock } from '../lockers/hazelcast-by-hand.js'
import { hazelcastUrl } from '../lockers/hazelcast-server.js'
import type { ForeignLibrary, LockLibrary } from '../lockers/locker.js'
import { advisory, twoUpdates } from '../lockers/postgres-peers.js'
import { eagerLockfile } from '../lockers/proper-lockfile.js'
import { poppedElement, redlock, twoScripts } from '../lockers/redis-peers.js'
import { rFairLock } from '../lockers/redisson.js'
import { signalboxFile } from '../lockers/signalbox-file.js'
import {
  signalboxHazelcast,
  signalboxPostgres,
  signalboxRedis,
  signalboxZooKeeper,
} from '../lockers/signalbox-server.js'

/** A library to compare with, and the goal for the ratio of Signalbox's speed to its speed, if any. */
export interface Peer {
  readonly library: LockLibrary | ForeignLibrary
  readonly goal?: number
}

/** An engine for several processes, with peers that do the same work on the same server. */
export interface Engine {
  /** Name of the part of the bench. */
  readonly part: string
  readonly name: string
  /** Opens a box on the server whose address is in the folder, or on files in the folder. */
  readonly openBox: (folder: string) => Promise<Box>
  /** Opens a box on a server through a proxy. Absent if there is no network. */
  readonly openThrough?: (proxy: Proxy, address: string) => Promise<Box>
  readonly signalbox: LockLibrary
  /** Peers for boxes that each lock their own key. */
  readonly ownKeys: readonly Peer[]
  /** Peers for boxes that lock the same key. */
  readonly oneKey: readonly Peer[]
  /** Peer for a lock next to many held ones. A single request keeps each of them. */
  readonly beside?: LockLibrary
}

/** Engines in the order of the report. */
export const engines: readonly Engine[] = [
  {
    part: 'growth-files',
    name: 'files',
    openBox: folder => open(`file:${folder}`),
    signalbox: signalboxFile,
    ownKeys: [{ library: eagerLockfile, goal: 3 }],
    oneKey: [{ library: eagerLockfile, goal: 1 }],
  },
  {
    part: 'growth-redis',
    name: 'Redis',
    openBox: async folder => open(await toldAddress(folder)),
    openThrough: (proxy, address) => open(through(proxy, address)),
    signalbox: signalboxRedis,
    ownKeys: [{ library: redlock, goal: 0.8 }, { library: twoScripts }],
    oneKey: [{ library: poppedElement, goal: 0.4 }, { library: redlock }, { library: rFairLock }],
    beside: twoScripts,
  },
  {
    part: 'growth-postgres',
    name: 'PostgreSQL',
    openBox: async folder => open(await toldAddress(folder)),
    openThrough: (proxy, address) => open(through(proxy, address)),
    signalbox: signalboxPostgres,
    ownKeys: [{ library: twoUpdates, goal: 0.6 }, { library: advisory }],
    oneKey: [{ library: advisory, goal: 0.4 }],
    beside: twoUpdates,
  },
  {
    part: 'growth-zookeeper',
    name: 'ZooKeeper',
    openBox: async folder => open(`zookeeper://${await toldAddress(folder)}`),
    openThrough: (proxy, address) => open(`zookeeper://${through(proxy, address)}`),
    signalbox: signalboxZooKeeper,
    ownKeys: [{ library: curator }],
    oneKey: [{ library: curator }],
  },
  {
    part: 'growth-hazelcast',
    name: 'Hazelcast',
    openBox: async folder => open(hazelcastUrl(await toldAddress(folder))),
    // The member announces its own address, so the client must stay on its first connection.
    openThrough: (proxy, address) =>
      open({
        hazelcast: {
          clusterName: TEST_CLUSTER,
          network: { clusterMembers: [through(proxy, address)], smartRouting: false },
        },
      }),
    signalbox: signalboxHazelcast,
    ownKeys: [{ library: writtenMapLock, goal: 0.6 }, { library: mapLockAlone }],
    oneKey: [{ library: writtenMapLock, goal: 0.6 }],
    beside: writtenMapLock,
  },
]

/** Replaces the port of an address with that of a proxy. */
function through(proxy: Proxy, address: string): string {
  return address.replace(PORT, `$1${proxy.port}`)
}

/** Matches the port of an address or URL. */
export const PORT = /(127\.0\.0\.1:)(\d+)/
