import { createClient, CreateMode } from 'node-zookeeper-client'
import { ZooKeeper } from '../../src/zookeeper/index.js'
import { now } from '../clock.js'
import { toldAddress } from '../lockers/address-file.js'
import { zooKeeperSupport } from '../lockers/zookeeper-server.js'
import { until } from '../processes/busy.js'
import { forked, type ForkedSubject } from '../processes/forked.js'
import type { Performance, Window } from '../processes/performer.js'
import { WaitLog } from '../wait-log.js'
import type { Work } from '../work.js'

const OUTSTANDING = 1000
const DATA = Buffer.alloc(100, 'x')

/** A client that can create a node. */
interface Creator {
  /** Adds ten digits to the path. */
  create(path: string): Promise<unknown>
  close(): Promise<void>
}

const signalbox: readonly [string, (address: string) => Promise<Creator>] = [
  'signalbox',
  async address => {
    const zk = await ZooKeeper.connect(address)
    return {
      create: path => zk.create(path, DATA, { sequential: true }),
      close: () => zk.close(),
    }
  },
]

const nodeZooKeeperClient: readonly [string, (address: string) => Promise<Creator>] = [
  'node-zookeeper-client',
  async address => {
    const client = createClient(address)
    const connected = new Promise<void>(resolve => client.once('connected', resolve))
    client.connect()
    await connected
    return {
      create: path =>
        new Promise<void>((resolve, reject) => {
          client.create(path, DATA, CreateMode.PERSISTENT_SEQUENTIAL, error => {
            if (error) reject(new Error(`ZooKeeper refused: ${String(error)}`, { cause: error }))
            else resolve()
          })
        }),
      close() {
        client.close()
        return Promise.resolve()
      },
    }
  },
]

function subject([name, connect]: typeof signalbox): ForkedSubject {
  return forked(
    name,
    async ({ folder }) => {
      const creator = await connect(await toldAddress(folder))
      await creator.create('/warm-')
      return { perform: window => creates(window, creator), stop: () => creator.close() }
    },
    { support: zooKeeperSupport },
  )
}

/** As many tasks as requests are to be outstanding; each creates one node after the other. */
async function creates({ startAt, endAt }: Window, creator: Creator): Promise<Performance> {
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
  await Promise.all(Array.from({ length: OUTSTANDING }, task))
  return { operations, waits: waits.values() }
}

/** Nodes created as fast as they can be, without any lock. */
export const createsWork: Work = {
  part: 'zookeeper',
  name: `nodes of 100 bytes created, ${OUTSTANDING} requests outstanding`,
  seconds: 2,
  subjects: [subject(signalbox), subject(nodeZooKeeperClient)],
  comparisons: [
    { measure: 'opsPerSecond', of: signalbox[0], to: nodeZooKeeperClient[0], goal: { atLeast: 1 } },
  ],
}
