import { Redis } from 'ioredis'
import Redlock from 'redlock'
import { open } from 'signalbox'
import { startRedisServers } from '../../test/support/servers/redis.js'
import { tellAddress, toldAddress } from '../lockers/address-file.js'
import type { LockLibrary } from '../lockers/locker.js'

/**
 * Lease of redlock, in milliseconds, as in the example of its documentation. Between two attempts, redlock keeps the
 * servers that it has locked. So if several callers each lock some of the servers, all wait until a lease has expired.
 */
const LEASE = 5_000

/** Starts five servers, writes their addresses for the processes of one subject, and then stops `down` of them. */
function support(down: number): (folder: string) => Promise<() => Promise<void>> {
  return async folder => {
    const servers = await startRedisServers(5)
    await tellAddress(folder, servers.map(({ host, port }) => `${host}:${port}`).join(','))
    // Stops every other server, so that the dead ones are not all at one end of the list.
    await Promise.all(
      servers.filter((_, index) => index % 2 === 0 && index < 2 * down).map(one => one.kill()),
    )
    return async () => {
      await Promise.all(servers.map(server => server.kill()))
    }
  }
}

/** Signalbox on five servers, some of which are down. */
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

/** redlock on five servers, some of which are down. */
export function redlockQuorum(down: number): LockLibrary {
  return {
    name: 'redlock',
    support: support(down),
    async open(folder) {
      const clients = (await toldAddress(folder)).split(',').map(host => new Redis(`redis://${host}`))
      // The client itself tries to reach a dead server again.
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
