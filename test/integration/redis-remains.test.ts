import { describe, expect, test } from 'vitest'
import type { Box } from '../../src/index.js'
import { pause, queued, until } from '../../packages/conformance/src/time.js'
import { codeOf } from '../support/redis/outcome.js'
import { RedisPlace } from '../support/redis/place.js'

/** Waits until Redis contains nothing but the counter. */
async function onlyTheCounter({ server }: RedisPlace): Promise<void> {
  await until('only the counter is left', async () => Number(await server.command('DBSIZE')) <= 1)
  expect(await server.command('SCAN', 0, 'COUNT', 1000)).toEqual(['0', ['signalbox:1:{}:numbers']])
}

/** Acquires all kinds of locks with two boxes at the same time. All keys contain the name. */
async function useAll(one: Box, other: Box, name: string): Promise<void> {
  const stay = (): Promise<void> => pause(5)
  await Promise.all(
    [one, other].map(async box => {
      await box.mutex(`${name} mutex`).run(stay)
      await box.semaphore(`${name} permits`, { max: 3 }).run(stay)
      await box.semaphore(`${name} one permit`, { max: 1 }).run(stay)
      await box.readWriteLock(`${name} pages`).read.run(stay)
      await box.readWriteLock(`${name} pages`).write.run(stay)
      await box.mutex(`${name} a`, `${name} b`, `${name} c`).run(stay)
      await box.mutex(`${name} b`, `${name} mutex`).run(stay)
      await box
        .mutex(`${name} mutex`)
        .tryAcquire()
        .then(grant => grant?.release())
    }),
  )
}

describe.concurrent('a key that was used once leaves nothing behind', () => {
  test('after every kind of use', async () => {
    await using here = await RedisPlace.start()
    const [one, other] = [await here.box(), await here.box()]
    for (let round = 0; round < 20; round++) await useAll(one, other, `key ${round}`)
    await onlyTheCounter(here)
  })

  test('after waits were aborted or timed out, also at the moment of the grant', async () => {
    await using here = await RedisPlace.start()
    const [one, other] = [await here.box(), await here.box()]
    const endings = new Set<string | undefined>()
    for (let round = 0; round < 30; round++) {
      const held = await one.mutex(`key ${round}`).acquire()
      const abort = new AbortController()
      const asked = [
        other.mutex(`key ${round}`).run(() => undefined, { signal: abort.signal }),
        other.mutex(`key ${round}`, 'more').run(() => undefined, { wait: round }),
        other.semaphore(`permits ${round}`, { max: 2 }).run(() => undefined, { wait: round }),
        one.readWriteLock(`key ${round}`).read.run(() => undefined, { wait: round }),
      ].map(codeOf)
      await pause(round % 10)
      if (round % 2 === 0) abort.abort()
      await held.release()
      abort.abort()
      for (const ending of await Promise.all(asked)) endings.add(ending)
    }
    expect([...endings]).toEqual(expect.arrayContaining(['ABORTED', 'TIMED_OUT', undefined]))
    await onlyTheCounter(here)
  })

  test('when a waiter for the lock of another program gave up', async () => {
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
    await onlyTheCounter(here)
  })

  test('when holders, readers and waiters were killed', async () => {
    await using here = await RedisPlace.start()
    const box = await here.box()
    const [one, other] = [await here.process(), await here.process()]
    await one.mutex('held', ['key', 'more'], { lease: 1000 })
    await one.call('acquire', 'read', [{ key: 'pages', mode: 'shared' }], { lease: 1000 })
    for (const key of ['key', 'pages']) {
      void other.mutex(key, [key], { lease: 1000, wait: 1000 }).catch(() => undefined)
      await queued(box, key, 1)
    }
    await Promise.all([one.kill(), other.kill()])
    // Nobody requests the keys again.
    await onlyTheCounter(here)
  })
})
