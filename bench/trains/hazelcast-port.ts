import { byHand, hazelcastClient } from '../lockers/hazelcast-by-hand.js'
import { hazelcastSupport } from '../lockers/hazelcast-server.js'
import type { ForkedSubject } from '../processes/forked.js'
import { straightPort } from './straight-port.js'

/** The direct port of the train tracker to Hazelcast's client. */
export function hazelcastPort(processes: number): ForkedSubject {
  return straightPort(
    `a straight port, ${processes} ${processes === 1 ? 'process' : 'processes'}`,
    processes,
    hazelcastSupport,
    async folder => {
      const client = await hazelcastClient(folder)
      const objects = await client.getMap<string, string>('objects')
      const locker = await byHand.open(folder, [])
      return {
        lock: key => locker.lock(key),
        get: key => objects.get(key),
        set: (key, value) => objects.set(key, value),
        delete: key => objects.delete(key),
        async close() {
          await locker.close()
          await client.shutdown()
        },
      }
    },
  )
}
