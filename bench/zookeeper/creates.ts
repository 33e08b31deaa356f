import { ZooKeeper } from 'signalbox-zookeeper'
import { now } from '../clock.js'
import { toldAddress } from '../lockers/address-file.js'
import { nativeZooKeeper, nodeZooKeeperClient, type ZooKeeperPackage } from '../lockers/zookeeper-clients.js'
import { zooKeeperSupport } from '../lockers/zookeeper-server.js'
import { until } from '../processes/busy.js'
import { forked, type ForkedSubject } from '../processes/forked.js'
import type { Performance, Window } from '../processes/performer.js'
import { WaitLog } from '../wait-log.js'
import type { Work } from '../work.js'
import { serverKinds } from './server-kinds.js'

const OUTSTANDING = 1000
const DATA = Buffer.alloc(100, 'x')

/** A client that can create a node. */
interface Creator {
  /** Creates a node. Adds ten digits to the path. */
  create(path: string): Promise<unknown>
  close(): Promise<void>
}

type Support = typeof zooKeeperSupport

/** Opens a {@link Creator} in a process. */
interface Creating {
  readonly name: string
  readonly open: (address: string) => Promise<Creator>
}

const signalbox: Creating = {
  name: 'signalbox',
  async open(address) {
    const zk = await ZooKeeper.connect(address)
    return {
      create: path => zk.create(path, DATA, { sequential: true }),
      close: () => zk.close(),
    }
  },
}

function creating({ name, connect }: ZooKeeperPackage): Creating {
  return {
    name,
    async open(address) {
      const client = await connect(address)
      return {
        create: path => client.makeNumbered(path, DATA, false),
        close: () => client.close(),
      }
    },
  }
}

/**
 * Creates nodes through a client, with a number of outstanding requests, on the server whose address is in the folder.
 */
function subject(name: string, open: Creating['open'], outstanding: number, support: Support): ForkedSubject {
  return forked(
    name,
    async ({ folder }) => {
      const creator = await open(await toldAddress(folder))
      await creator.create('/warm-')
      return { perform: window => creates(window, creator, outstanding), stop: () => creator.close() }
    },
    { support },
  )
}

/** Runs one task for each outstanding request. Each task creates one node after the other. */
async function creates(
  { startAt, endAt }: Window,
  creator: Creator,
  outstanding: number,
): Promise<Performance> {
  const waits = new WaitLog()
  let operations = 0
  await until(startAt)
  const task = async (): Promise<void> => {
    for (let since = now(); since < endAt; since = now()) {
      await creator.create('/node-')
      waits.add(now() - since)
      if (now() <= endAt) operations++
    }
  }
  await Promise.all(Array.from({ length: outstanding }, task))
  return { operations, waits: waits.values() }
}

const peers = [nodeZooKeeperClient, nativeZooKeeper]

/** Nodes created as fast as possible, without a lock. */
export const createsWork: Work = {
  part: 'zookeeper',
  name: `nodes of 100 bytes created, ${OUTSTANDING} requests outstanding`,
  seconds: 2,
  subjects: [signalbox, ...peers.map(creating)].map(({ name, open }) =>
    subject(name, open, OUTSTANDING, zooKeeperSupport),
  ),
  comparisons: peers.map(({ name }) => ({
    measure: 'opsPerSecond',
    of: signalbox.name,
    to: name,
    goal: { atLeast: 1 },
  })),
}

/** Nodes created by Signalbox's client on several kinds of servers. Shows the cost of the disk and of more servers. */
export const serverWorks: readonly Work[] = [
  { outstanding: 1, name: 'nodes of 100 bytes created one after another, by the kind of servers' },
  { outstanding: OUTSTANDING, name: `${OUTSTANDING} requests outstanding, by the kind of servers` },
].map(({ outstanding, name }) => ({
  part: 'zookeeper',
  name,
  seconds: 2,
  subjects: serverKinds.map(kind => subject(kind.name, signalbox.open, outstanding, kind.support)),
  comparisons: serverKinds.slice(1).map(kind => ({
    measure: 'opsPerSecond',
    of: kind.name,
    to: serverKinds[0]!.name,
  })),
}))
