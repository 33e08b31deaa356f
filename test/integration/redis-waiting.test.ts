import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/clock.js'
import { queued, pause } from '../../packages/conformance/src/time.js'
import { RedisPlace } from '../support/redis/place.js'

const PROCESSES = 4
const TASKS = 4
const LEASE = 1500

describe.concurrent('waiting for a lock that is held', () => {
  test('costs the server only renewals and one poll a process and lease', async () => {
    await using here = await RedisPlace.start()
    const box = await here.box()
    const held = await box.mutex('key').acquire({ lease: LEASE })
    const others = await Promise.all(Array.from({ length: PROCESSES }, () => here.process()))
    const asked = others.flatMap(other =>
      Array.from({ length: TASKS }, (_, task) => other.mutex(`task ${task}`, ['key'])),
    )
    // Only one of them gets it before the test is over.
    for (const each of asked) each.catch(() => undefined)
    await queued(box, 'key', PROCESSES)
    // Their channels are entered by now, too.
    await pause(500)
    await here.server.command('CONFIG', 'RESETSTAT')
    const begun = systemClock.now()
    await pause(3 * LEASE)
    const calls = await here.server.calls()
    const leases = (systemClock.now() - begun) / LEASE
    const { evalsha = 0, ...rest } = calls
    // Before the lease that they know of is over, all of them must have looked.
    expect(evalsha).toBeGreaterThanOrEqual(PROCESSES)
    expect(evalsha).toBeLessThanOrEqual(3 * (leases + 1) + PROCESSES * (leases + 1))
    // Only the script, what it does itself, and the heartbeats of connections that listen.
    const beside = ['ping', 'info', 'config|resetstat']
    const script =
      'time get mget set exists pexpire pttl hget hset hdel zadd zlexcount zrangebylex hrandfield'.split(' ')
    expect(Object.keys(rest).filter(name => ![...beside, ...script].includes(name))).toEqual([])
    expect(calls['ping'] ?? 0).toBeLessThanOrEqual(PROCESSES)

    await held.release()
    expect((await Promise.race(asked)).token).toBeGreaterThan(held.token)
  })

  test('is one place in the queue for a thousand callers of one process', async () => {
    await using here = await RedisPlace.start()
    const [box, other] = [await here.box(), await here.box()]
    const held = await box.mutex('key').acquire()
    let served = 0
    const asked = Array.from({ length: 1000 }, () => other.mutex('key').run(() => served++))
    await queued(box, 'key', 1)
    await pause(300)
    await queued(box, 'key', 1)
    // The holder and the waiter.
    expect(await here.server.command('ZCARD', 'signalbox:1:{}:queues')).toBe(2)
    await held.release()
    await Promise.all(asked)
    expect(served).toBe(1000)
  })
})
