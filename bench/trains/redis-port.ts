import { Redis } from 'ioredis'
import { Mutex } from 'redis-semaphore'
import { toldAddress } from '../lockers/address-file.js'
import { redisSupport } from '../lockers/redis-server.js'
import { straightPort } from './straight-port.js'

const LOCK = { lockTimeout: 30_000, acquireTimeout: 60_000 }

/** The direct port of the train tracker to redis-semaphore, in four processes. */
export const redisPort = straightPort(
  'a straight port with redis-semaphore',
  4,
  redisSupport,
  async folder => {
    const client = new Redis(await toldAddress(folder))
    return {
      async lock(key) {
        const mutex = new Mutex(client, key, LOCK)
        await mutex.acquire()
        return { unlock: () => mutex.release() }
      },
      get: key => client.get(key),
      set: (key, value) => client.set(key, value),
      delete: key => client.del(key),
      close: async () => client.disconnect(),
    }
  },
)
