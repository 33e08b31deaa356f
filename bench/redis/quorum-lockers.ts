import { Redis } from 'ioredis'
import Redlock from 'redlock'
import { open } from 'signalbox'
import { startRedisServers } from '../../test/support/servers/redis.js'
import { tellAddress, toldAddress } from '../lockers/address-file.js'
import type { LockLibrary } from '../lockers/locker.js'

/**
 * How long redlock holds a lock, in milliseconds, as in the example of its documentation. Between two attempts it keeps
 * the servers that it got, so when several callers share them out, all wait until a lease is over.
 */
const LEASE = 5_000

/** Starts five servers that the processes of one subject find by their folder, and ends some of them again. */
function support(down: number): (folder: string) => Promise<() => Promise<void>> {
  return async folder => {
    const servers = await startRedisServers(5)
    await tellAddress(folder, servers.map(({ host, port }) => `${host}:${port}`).join(','))
    // The first and the third and so on, so that no library has them all together at one end.
    await Promise.all(
      servers.filter((_, index) => index % 2 === 0 && index < 2 * down).map(one => one.kill()),
    )
    return async () => {
      await Promise.all(servers.map(server => server.kill()))
    }
  }
}

/** Signalbox over five servers, of which a number are down. */
export function signalboxQuorum(down: number): LockLibrary {
  return {
    name: 'signalbox',
    support: support(down),
    async open(folder) {
      const box = await open(`redis-quorum://${await toldAddress(folder)}`)
      return {
        async lock(key) {
          const grant = await box.mutex(key).acquire()
          return { token: grant.token, unlock: () => grant.release() }
        },
        close: () => box.close(),
      }
    },
  }
}

/** redlock over five servers, of which a number are down. */
export function redlockQuorum(down: number): LockLibrary {
  return {
    name: 'redlock',
    support: support(down),
    async open(folder) {
      const clients = (await toldAddress(folder)).split(',').map(host => new Redis(`redis://${host}`))
      // What can't be reached is tried again by the client itself.
      for (const client of clients) client.on('error', () => undefined)
      const locks = new Redlock(clients, { retryCount: -1, retryDelay: 200, retryJitter: 100 })
      return {
        async lock(key) {
          const lock = await locks.acquire([key], LEASE)
          return {
            async unlock() {
              await locks.release(lock, { retryCount: 10 })
            },
          }
        },
        close: async () => clients.forEach(client => client.disconnect()),
      }
    },
  }
}
