import { setTimeout as pause } from 'node:timers/promises'
import { randomUUID } from 'node:crypto'
import { Verrou } from '@verrou/core'
import { redisStore } from '@verrou/core/drivers/redis'
import { Redis } from 'ioredis'
import { createClient, defineScript } from 'redis'
import Redlock from 'redlock'
import { Mutex } from 'redis-semaphore'
import type { LockLibrary } from './locker.js'
import { toldAddress } from './address-file.js'
import { redisSupport } from './redis-server.js'

/** How long all peers hold a lock unless they renew it, in milliseconds. */
const LEASE = 30_000
const NO_END = 1e9

const RELEASE = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`

interface Released extends Redis {
  releaseHeld(key: string, value: string): Promise<number>
}

/** What the documentation of Redis recommends: SET NX PX, and a script that deletes its own value. */
export const rawIoredis: LockLibrary = {
  name: 'SET NX PX and a script, by ioredis',
  support: redisSupport,
  async open(folder) {
    const client = new Redis(await toldAddress(folder)) as Released
    client.defineCommand('releaseHeld', { numberOfKeys: 1, lua: RELEASE })
    return {
      async lock(key) {
        const value = randomUUID()
        while ((await client.set(key, value, 'PX', LEASE, 'NX')) !== 'OK') await pause(10)
        return {
          async unlock() {
            await client.releaseHeld(key, value)
          },
        }
      },
      close: async () => client.disconnect(),
    }
  },
}

/** The same over the client that Signalbox opens by itself. */
export const rawNodeRedis: LockLibrary = {
  name: 'SET NX PX and a script, by node-redis',
  support: redisSupport,
  async open(folder) {
    const releaseHeld = defineScript({
      SCRIPT: RELEASE,
      NUMBER_OF_KEYS: 1,
      parseCommand(parser, key: string, value: string) {
        parser.pushKey(key)
        parser.push(value)
      },
      transformReply: (reply: number) => reply,
    })
    const client = createClient({ url: await toldAddress(folder), scripts: { releaseHeld } })
    await client.connect()
    return {
      async lock(key) {
        const value = randomUUID()
        const how = { expiration: { type: 'PX', value: LEASE }, condition: 'NX' } as const
        while ((await client.set(key, value, how)) !== 'OK') await pause(10)
        return {
          async unlock() {
            await client.releaseHeld(key, value)
          },
        }
      },
      close: () => client.close(),
    }
  },
}

/** redlock over one server. */
export const redlock: LockLibrary = {
  name: 'redlock',
  support: redisSupport,
  async open(folder) {
    const client = new Redis(await toldAddress(folder))
    const locks = new Redlock([client], { retryCount: -1, retryDelay: 200, retryJitter: 100 })
    return {
      async lock(key) {
        const lock = await locks.acquire([key], LEASE)
        return {
          async unlock() {
            await locks.release(lock, { retryCount: 10 })
          },
        }
      },
      close: async () => client.disconnect(),
    }
  },
}

/** redis-semaphore's mutex. */
export const redisSemaphore: LockLibrary = {
  name: 'redis-semaphore',
  support: redisSupport,
  async open(folder) {
    const client = new Redis(await toldAddress(folder))
    return {
      async lock(key) {
        const mutex = new Mutex(client, key, { lockTimeout: LEASE, acquireTimeout: NO_END })
        await mutex.acquire()
        return { unlock: () => mutex.release() }
      },
      close: async () => client.disconnect(),
    }
  },
}

/** Verrou on its Redis driver. */
export const verrou: LockLibrary = {
  name: '@verrou/core',
  support: redisSupport,
  async open(folder) {
    const client = new Redis(await toldAddress(folder))
    const locks = new Verrou({
      default: 'redis',
      stores: { redis: { driver: redisStore({ connection: client }) } },
    })
    return {
      async lock(key) {
        const lock = locks.createLock(key, LEASE)
        await lock.acquire()
        return { unlock: () => lock.release() }
      },
      close: async () => client.disconnect(),
    }
  },
}
