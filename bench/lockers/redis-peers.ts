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

/** Lease of the locks of all peers, in milliseconds. It is longer than any work. */
const LEASE = 600_000
const NO_END = 1e9

const RELEASE = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`

interface Released extends Redis {
  releaseHeld(key: string, value: string): Promise<number>
}

/** The lock that the documentation of Redis recommends: SET NX PX, and a script that deletes only its own value. */
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

/** The same with node-redis, the client that Signalbox opens by itself. */
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

/** redlock on one server. */
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

/** Verrou with its Redis driver. */
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

const TAKE_NUMBERED = `
if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.call('incr', KEYS[2]) end
return 0`

interface Numbered extends Released {
  takeNumbered(key: string, counter: string, value: string, lease: number): Promise<number>
}

/** The minimum for a lock with an owner, an expiry and a token: a script for each of lock and unlock. */
export const twoScripts: LockLibrary = {
  name: 'two scripts with owner, expiry and token, by ioredis',
  support: redisSupport,
  async open(folder) {
    const client = new Redis(await toldAddress(folder)) as Numbered
    client.defineCommand('takeNumbered', { numberOfKeys: 2, lua: TAKE_NUMBERED })
    client.defineCommand('releaseHeld', { numberOfKeys: 1, lua: RELEASE })
    return {
      async lock(key) {
        const value = randomUUID()
        const attempt = (): Promise<number> => client.takeNumbered(key, `${key}:token`, value, LEASE)
        let token = await attempt()
        for (; token === 0; token = await attempt()) await pause(10)
        return {
          token: BigInt(token),
          async unlock() {
            await client.releaseHeld(key, value)
          },
        }
      },
      close: async () => client.disconnect(),
    }
  },
}

const PROVIDE = `if redis.call('set', KEYS[2], 1, 'NX') then redis.call('rpush', KEYS[1], 1) end`

interface Providing extends Redis {
  provide(list: string, mark: string): Promise<void>
}

/** A list with one element for each key. BLPOP takes it, in order of arrival, and RPUSH returns it. No lease. */
export const poppedElement: LockLibrary = {
  name: 'BLPOP and RPUSH, by ioredis',
  support: redisSupport,
  async open(folder, keys) {
    const client = new Redis(await toldAddress(folder)) as Providing
    client.defineCommand('provide', { numberOfKeys: 2, lua: PROVIDE })
    for (const key of keys) await client.provide(key, `${key}:made`)
    return {
      async lock(key) {
        await client.blpop(key, 0)
        return {
          async unlock() {
            await client.rpush(key, 1)
          },
        }
      },
      close: async () => client.disconnect(),
    }
  },
}
