import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.js'
import { queued, pause, until } from '../../packages/conformance/src/time.js'
import { RedisPlace } from '../support/redis/place.js'

const PROCESSES = 4
const TASKS = 4
const LEASE = 1500

describe.concurrent('waiting for a lock that is held', () => {
  test('costs the server only renewals and one sign of life a process and lease', async () => {
    await using here = await RedisPlace.start()
    const box = await here.box()
    const held = await box.mutex('key').acquire({ lease: LEASE })
    const others = await Promise.all(Array.from({ length: PROCESSES }, () => here.process()))
    const asked = others.flatMap(other =>
      Array.from({ length: TASKS }, (_, task) => other.mutex(`task ${task}`, ['key'])),
    )
    // Handles all rejections, because only one of the waits succeeds during the test.
    for (const each of asked) each.catch(() => undefined)
    await queued(box, 'key', PROCESSES)
    // Their channels are subscribed by then, too.
    await pause(500)
    await here.server.command('CONFIG', 'RESETSTAT')
    const begun = systemClock.now()
    await pause(3 * LEASE)
    const calls = await here.server.calls()
    const leases = (systemClock.now() - begun) / LEASE
    const { fcall = 0, ...rest } = calls
    expect(fcall).toBeGreaterThanOrEqual(PROCESSES)
    expect(fcall).toBeLessThanOrEqual(3 * (leases + 1) + PROCESSES * (leases + 1))
    // Allows only calls, their commands on the server, and the heartbeats of connections that listen.
    const beside = ['ping', 'info', 'config|resetstat']
    const inCalls =
      'time get mget set exists pexpire pttl hget hset hdel zadd zscore zremrangebyscore zlexcount zrangebylex hrandfield'.split(
        ' ',
      )
    expect(Object.keys(rest).filter(name => ![...beside, ...inCalls].includes(name))).toEqual([])
    expect(calls['ping'] ?? 0).toBeLessThanOrEqual(PROCESSES)

    await held.release()
    expect((await Promise.race(asked)).token).toBeGreaterThan(held.token)
  })

  test('costs the same with a thousand requests, and keeps their places beyond their leases', async () => {
    await using here = await RedisPlace.start()
    const [box, other] = [await here.box(), await here.box()]
    const held = await box.mutex('key').acquire({ lease: '60s' })
    const order: number[] = []
    const asked = Array.from({ length: 1000 }, async (_, index) => {
      const grant = await other.mutex('key').acquire({ lease: 4000, ownRequest: true })
      order.push(index)
      await grant.release()
    })
    await queued(box, 'key', 1000)
    // Each waiter checks once when its channel is subscribed.
    await pause(2000)
    await here.server.command('CONFIG', 'RESETSTAT')
    await pause(5000)
    const { fcall = 0, hset = 0, zadd = 0 } = await here.server.calls()
    // Each sign of life sends ten operations in one call.
    expect(fcall).toBeLessThanOrEqual(5)
    expect(zadd).toBeLessThanOrEqual(50)
    expect(hset).toBe(0)
    await held.release()
    await Promise.all(asked)
    expect(order).toEqual([...order.keys()])
    expect(await here.server.command('KEYS', '*')).toEqual(['signalbox:1:{}:numbers'])
  })

  test('is right beside versions without signs of life: to them, a covered waiter does not expire', async () => {
    await using here = await RedisPlace.start()
    const [box, other] = [await here.box(), await here.box()]
    const held = await box.mutex('key').acquire()
    const asked = other.mutex('key').run(() => undefined)
    await queued(box, 'key', 1)
    const expiries = async (): Promise<string[]> => {
      const script = `local found = {}
      for _, text in ipairs(redis.call('HVALS', 'signalbox:1:{}:requests')) do
        local request = cmsgpack.unpack(text)
        if request.phase == 'waiting' then found[#found + 1] = string.format('%.0f', request.expires) end
      end
      return found`
      return (await here.server.command('EVAL', script, '0')) as string[]
    }
    await until('a sign has named it', async () => (await expiries())[0] === String(Number.MAX_SAFE_INTEGER))
    await held.release()
    await asked
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
    // The queue has the holder and one waiter.
    expect(await here.server.command('ZCARD', 'signalbox:1:{}:queues')).toBe(2)
    await held.release()
    await Promise.all(asked)
    expect(served).toBe(1000)
  })
})
