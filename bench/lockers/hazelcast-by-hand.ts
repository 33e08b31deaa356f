import { Client, type IMap } from 'hazelcast-client'
import { TEST_CLUSTER } from '../../test/support/servers/hazelcast.js'
import { toldAddress } from './address-file.js'
import { hazelcastSupport } from './hazelcast-server.js'
import type { LockLibrary } from './locker.js'
import { LocalQueues } from './local-queues.js'

/** Maximum time that a lock is held, in milliseconds. It is longer than any work. */
const LEASE = 600_000
const WAIT = 60_000

/** Connects a client to the member whose address is in the folder. */
export async function hazelcastClient(folder: string): Promise<Client> {
  return Client.newHazelcastClient({
    clusterName: TEST_CLUSTER,
    network: { clusterMembers: [await toldAddress(folder)] },
    properties: { 'hazelcast.logging.level': 'OFF' },
  })
}

/** The lock of a map, with a rising fencing number in another map: tryLock, get, compare-and-set, unlock. */
export const byHand: LockLibrary = {
  name: 'tryLock, get, compare-and-set and unlock, by hazelcast-client',
  support: hazelcastSupport,
  async open(folder) {
    const client = await hazelcastClient(folder)
    const [locks, fences] = await Promise.all([
      client.getMap<string, number>('locks'),
      client.getMap<string, number>('fences'),
    ])
    // All tasks of a client are one owner to a member, so they must queue in the process.
    const queues = new LocalQueues()
    return {
      async lock(key) {
        const leave = await queues.enter(key)
        if (!(await locks.tryLock(key, WAIT, LEASE))) throw new Error(`${key} is still held`)
        const token = await raised(fences, key)
        return {
          token: BigInt(token),
          async unlock() {
            await locks.unlock(key)
            leave()
          },
        }
      },
      close: () => client.shutdown(),
    }
  },
}

async function raised(fences: IMap<string, number>, key: string): Promise<number> {
  for (;;) {
    const before = await fences.get(key)
    const next = (before ?? 0) + 1
    const isDone =
      before === null
        ? (await fences.putIfAbsent(key, next)) === null
        : await fences.replaceIfSame(key, before, next)
    if (isDone) return next
  }
}

/** The lock of a map, either alone or with an owner and a number that the holder writes. */
function mapLock(name: string, writes: boolean): LockLibrary {
  return {
    name,
    support: hazelcastSupport,
    async open(folder) {
      const client = await hazelcastClient(folder)
      const locks = await client.getMap<string, string>('locks')
      let count = 0
      return {
        async lock(key) {
          if (!(await locks.tryLock(key, WAIT, LEASE))) throw new Error(`${key} is still held`)
          if (writes) await locks.set(key, JSON.stringify({ owner: 'bench', count: ++count }))
          return { unlock: () => locks.unlock(key) }
        },
        close: () => client.shutdown(),
      }
    },
  }
}

/** For one task per client only, because all tasks of a client are one owner to a member. */
export const mapLockAlone = mapLock('tryLock and unlock, by hazelcast-client', false)
/** The minimum for a lock with an owner and a number. For one task per client only. */
export const writtenMapLock = mapLock('tryLock, set and unlock, by hazelcast-client', true)
