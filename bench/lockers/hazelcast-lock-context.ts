import { Client, LockContext } from 'hazelcast-client57'
import { TEST_CLUSTER } from '../../test/support/servers/hazelcast.js'
import { toldAddress } from './address-file.js'
import { hazelcastSupport } from './hazelcast-server.js'
import type { LockLibrary } from './locker.js'

const LEASE = 30_000
const WAIT = 60_000

/**
 * The locks of a map with the client's `LockContext`, since 5.7. Each task is its own owner to the members. No fence.
 */
export const lockContext: LockLibrary = {
  name: 'LockContext of hazelcast-client 5.7',
  support: hazelcastSupport,
  async open(folder) {
    const client = await Client.newHazelcastClient({
      clusterName: TEST_CLUSTER,
      network: { clusterMembers: [await toldAddress(folder)] },
      properties: { 'hazelcast.logging.level': 'OFF' },
    })
    const locks = await client.getMap<string, number>('locks')
    return {
      async lock(key) {
        let leave = (): void => undefined
        const left = new Promise<void>(resolve => (leave = resolve))
        let entered = (): void => undefined
        const inside = new Promise<void>(resolve => (entered = resolve))
        const whole = LockContext.run(async () => {
          if (!(await locks.tryLock(key, WAIT, LEASE))) throw new Error(`${key} is still held`)
          entered()
          await left
          await locks.unlock(key)
        })
        await Promise.race([inside, whole])
        return {
          async unlock() {
            leave()
            await whole
          },
        }
      },
      close: () => client.shutdown(),
    }
  },
}
