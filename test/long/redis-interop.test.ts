import { expect, test } from 'vitest'
import {
  redisPy,
  redisSemaphore,
  redlock,
  redsync,
  rFairLock,
  rLock,
  signalbox,
  type Kind,
} from '../interop/client.js'
import { expectHandOvers, meetByTurns, withOurs, type Place } from '../interop/meeting.js'
import { startRedis } from '../support/servers/redis.js'

/** Number of handovers in each direction. */
const HAND_OVERS = 1000
const LIMIT = 8 * 60_000

const strings: Omit<Place, 'url'> = { prefix: 'mutex:', layout: 'string' }
const hashes: Omit<Place, 'url'> = { prefix: '', layout: 'redisson' }

test.each<[string, Kind, Omit<Place, 'url'>]>([
  ['redis-py', redisPy, strings],
  ['redsync', redsync, strings],
  ['redlock', redlock, strings],
  ['redis-semaphore', redisSemaphore, strings],
  ['RLock', rLock, hashes],
  ['RFairLock', rFairLock, hashes],
])(
  `Signalbox and %s hand over ${HAND_OVERS} times each way and are never inside at once`,
  async (_, kind, manner) => {
    await using server = await startRedis()
    const wanted = withOurs([kind], HAND_OVERS)
    const place = { url: server.url, ...manner }
    const result = await meetByTurns(place, [signalbox, signalbox, kind, kind], wanted, LIMIT)
    console.log(result.stays, result.handOvers)
    expect(result.overlaps).toEqual([])
    expectHandOvers(result, wanted)
  },
)
