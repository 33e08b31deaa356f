import { open } from 'signalbox'
import { toldAddress } from './address-file.js'
import { hazelcastSupport, hazelcastUrl } from './hazelcast-server.js'
import type { LockLibrary } from './locker.js'
import { crowdedPostgresSupport, IDLE_BOXES, postgresSupport } from './postgres-server.js'
import { redisSupport } from './redis-server.js'
import { zooKeeperSupport } from './zookeeper-server.js'

/**
 * Signalbox on a server.
 * @param support starts the server.
 * @param urlOf returns the URL of a box for the server's address.
 */
function onServer(
  support: NonNullable<LockLibrary['support']>,
  urlOf = (address: string): string => address,
  name = 'signalbox',
): LockLibrary {
  return {
    name,
    support,
    async open(folder) {
      const box = await open(urlOf(await toldAddress(folder)))
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

export const signalboxRedis = onServer(redisSupport)
export const signalboxZooKeeper = onServer(zooKeeperSupport, address => `zookeeper://${address}`)
export const signalboxHazelcast = onServer(hazelcastSupport, hazelcastUrl)
/** With the client `pg`. */
export const signalboxPostgres = onServer(postgresSupport)
export const crowdedPostgres = onServer(
  crowdedPostgresSupport,
  url => url,
  `signalbox, next to ${IDLE_BOXES} idle boxes`,
)
