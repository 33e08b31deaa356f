import { expect, test } from 'vitest'
import { redisPy, redisSemaphore, redlock, redsync, signalbox } from '../interop/client.js'
import { meetByTurns, withOurs } from '../interop/meeting.js'
import { startRedis } from '../servers/redis.js'

const KINDS = [redisPy, redsync, redlock, redisSemaphore]
/** So often one comes right after the other, in each direction. */
const HAND_OVERS = 1000
const LIMIT = 5 * 60_000

test.each(KINDS.map(kind => [kind.kind, kind] as const))(
  `Signalbox and %s hand over ${HAND_OVERS} times each way and are never inside at once`,
  async (_, kind) => {
    await using server = await startRedis()
    const wanted = withOurs([kind], HAND_OVERS)
    const place = { url: server.url, prefix: 'mutex:', layout: 'string' } as const
    const result = await meetByTurns(place, [signalbox, signalbox, kind, kind], wanted, LIMIT)
    console.log(result.stays, result.handOvers)
    expect(result.overlaps).toEqual([])
    for (const [pair, times] of wanted) expect(result.handOvers.get(pair), pair).toBeGreaterThanOrEqual(times)
  },
)
