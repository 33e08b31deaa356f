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

/** A library to compare with, and the ratio of speed that Signalbox has to reach, if any. */
export interface Peer {
  readonly library: LockLibrary | ForeignLibrary
  readonly goal?: number
}

/** An engine across processes, with peers that do the same on the same server. */
export interface Engine {
  /** The part of the bench. */
  readonly part: string
  readonly name: string
  /** Opens a box on the server whose address is in the folder. */
  readonly openBox: (folder: string) => Promise<Box>
  /** Opens a box on a server that a proxy leads to. Absent where there is no network. */
  readonly openThrough?: (proxy: Proxy, address: string) => Promise<Box>
  readonly signalbox: LockLibrary
  /** For boxes that each lock a key of their own. */
  readonly ownKeys: readonly Peer[]
  /** For boxes that lock the same key. */
  readonly oneKey: readonly Peer[]
  /** For a lock beside many that are held. Keeps each of them with a single request. */
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
    // The member announces its own address, so the client keeps to its first connection.
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

/** An address with the port of a proxy instead of its own. */
function through(proxy: Proxy, address: string): string {
  return address.replace(PORT, `$1${proxy.port}`)
}

/** Port of an address or URL. */
export const PORT = /(127\.0\.0\.1:)(\d+)/
