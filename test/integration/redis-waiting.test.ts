import { describe, expect, test } from 'vitest'
import type { Box } from '../../src/index.js'
import { queued, pause, until } from '../../packages/conformance/src/time.js'
import { codeOf } from '../support/redis/outcome.js'
import { RedisPlace } from '../support/redis/place.js'

describe.concurrent('waiting for a lock', () => {
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

  test('for the lock of another program leaves nothing behind when the waiters give up', async () => {
    await using here = await RedisPlace.start()
    const [one, other] = [await here.box(), await here.box()]
    const keys = Array.from({ length: 20 }, (_, index) => `foreign ${index}`)
    await Promise.all(keys.map(key => here.server.command('SET', key, 'other', 'NX', 'PX', 60_000)))
    const abort = new AbortController()
    const ask = (box: Box, wait?: number): Promise<(string | undefined)[]> =>
      Promise.all(
        keys.map(key => codeOf(box.mutex(key, `${key} more`).acquire({ wait, signal: abort.signal }))),
      )
    const recorded = async (): Promise<number> =>
      Number(await here.server.command('HLEN', 'signalbox:1:{}:requests'))
    const patient = ask(one)
    await until('all of them wait', async () => (await recorded()) === 40)
    expect(new Set(await ask(other, 100))).toEqual(new Set(['TIMED_OUT']))
    // The waiters still have the requests of those for which they wait.
    expect(await recorded()).toBeGreaterThanOrEqual(40)
    abort.abort()
    expect(new Set(await patient)).toEqual(new Set(['ABORTED']))
    await until(
      'their places are gone',
      async () => !(await here.server.command('EXISTS', 'signalbox:1:{}:requests')),
    )
    expect(await here.server.command('EXISTS', 'signalbox:1:{}:queues')).toBe(0)
    await Promise.all(keys.map(key => here.server.command('DEL', key)))
    await until('only the counter is left', async () => Number(await here.server.command('DBSIZE')) <= 1)
    expect(await here.server.command('KEYS', '*')).toEqual(['signalbox:1:{}:numbers'])
  })
})
