import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.js'
import { locks, pause, queued, soFar, until } from '../../packages/conformance/src/time.js'
import { fight } from '../support/file/fight.js'
import { RedisPlace } from '../support/redis/place.js'

/** Returns the milliseconds until a held key expires on the server. */
async function left(here: RedisPlace, key: string): Promise<number> {
  return Number(await here.server.command('PTTL', key))
}

describe.concurrent('a holder that is stopped past its lease', () => {
  test('finds its loss first, and does not affect the next holder', async () => {
    await using here = await RedisPlace.start()
    const box = await here.box()
    const holder = await here.process()
    const old = await holder.mutex('it', ['key'], { lease: 1000 })
    const asked = box.mutex('key').acquire({ lease: '20s' })
    await queued(box, 'key', 1)
    const loss = holder.call('loss', 'it')
    const spinning = holder.call('spinUntilLost', 'it')
    await pause(200)
    holder.freeze()
    const next = await asked
    expect(next.token).toBeGreaterThan(old.token)
    await pause(500)
    holder.thaw()
    expect(await spinning).toMatchObject({ passedLate: 0, code: 'LOST' })
    expect(await loss).toBe('LOST')
    await expect(holder.release('it')).rejects.toMatchObject({ code: 'LOST' })
    // By then, the background renewals and releases of the lost grant have ended.
    await pause(500)
    next.assertHeld()
    expect(await left(here, 'key')).toBeGreaterThan(next.expiresIn() - 1)
    await expect(holder.mutex('again', ['key'], { wait: 100 })).rejects.toMatchObject({ code: 'TIMED_OUT' })
    await next.release()
    expect((await holder.mutex('again', ['key'])).token).toBeGreaterThan(next.token)
  })

  test('writes nothing with the transaction that it was in', async () => {
    await using here = await RedisPlace.start()
    const box = await here.box()
    const store = box.store('s')
    const holder = await here.process()
    const inside = holder.inside()
    const late = holder.call('transactionOver', 's', 'key', 'late', 700, 1000)
    const outcome = expect(late).rejects.toMatchObject({ code: 'LOST' })
    await inside
    holder.freeze()
    await store.transaction(['key'], transaction => transaction.put('key', 'of the next holder'))
    holder.thaw()
    await outcome
    expect(await store.get('key')).toMatchObject({ value: 'of the next holder' })
  })
})

describe.concurrent('waiters', () => {
  test('run when the key of the holder simply expires, one after another', async () => {
    await using here = await RedisPlace.start()
    const one = await here.box()
    const others = await here.boxes(3)
    const late: number[] = []
    for (let round = 0; round < 2; round++) {
      // Simulates a dead holder. A live one would report the end of its lease.
      const dead = `signalbox/1 dead.${round} 1 1 {"host":"here","pid":1}`
      await here.server.command('SET', 'key', dead, 'PX', 2000)
      const served: number[] = []
      const asked: Promise<unknown>[] = []
      for (const [place, box] of others.entries()) {
        asked.push(box.mutex('key').run(() => void served.push(place)))
        await queued(one, 'key', place + 1)
      }
      const lapses = systemClock.now() + (await left(here, 'key'))
      await asked[0]
      late.push(systemClock.now() - lapses)
      await Promise.all(asked)
      expect(served).toEqual([0, 1, 2])
    }
    // The first waiter polls 50 ms after the key has expired. On a busy machine it may be late, but not in every round.
    expect(Math.min(...late)).toBeLessThan(300)
  })

  test('that are woken while they are stopped past their lease get no grant', async () => {
    await using here = await RedisPlace.start()
    const [one, other] = [await here.box(), await here.box()]
    const held = await one.mutex('key').acquire()
    const waiter = await here.process()
    const asked = waiter.mutex('it', ['key'], { lease: 1000 })
    await queued(one, 'key', 1)
    const behind = other.mutex('key').acquire()
    await queued(one, 'key', 2)
    // Waits until the waiter has subscribed, so that the wake-up is in its socket when it continues.
    await until('it is heard', async () => {
      const channels = (await here.server.command('PUBSUB', 'CHANNELS', '*')) as string[]
      return channels.some(channel => channel.endsWith(waiter.session))
    })
    waiter.freeze()
    await held.release()
    const next = await behind
    waiter.thaw()
    await pause(600)
    next.assertHeld()
    expect(await soFar(asked)).toBe('pending')
    await queued(one, 'key', 1)
    await next.release()
    expect((await asked).token).toBeGreaterThan(next.token)
    await waiter.call('assertHeld', 'it')
  })
})

describe.concurrent('processes that want several of six keys, in any order', () => {
  test('all are served although some are killed, and hold all keys or none', async () => {
    await using here = await RedisPlace.start()
    const result = await fight({
      url: here.server.url,
      journal: join(here.server.folder, 'journal'),
      processes: 4,
      threads: 0,
      rounds: 20,
      lease: 3000,
      killEvery: 12,
      seed: 3,
    })
    expect(result).toMatchObject({ wrongs: [], failures: [], rounds: 80 })
    expect(result.kills).toBeGreaterThan(3)
    expect(await locks(await here.box())).toEqual([])
  })
})
