import { expect, test } from 'vitest'
import { InvalidArgumentError, open } from '../../src/index.js'

// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Any = any

/** Calls that users of other libraries write, and the calls that the error message suggests. */
const CALLS: readonly [call: string, make: (box: Any) => unknown, says: string][] = [
  ['mutex([keys])', box => box.mutex(['a', 'b']), "mutex('a', 'b')"],
  ['mutex(key, options)', box => box.mutex('a', { wait: 5 }), 'acquire, tryAcquire and run take options'],
  ['semaphore(key, number)', box => box.semaphore('s', 4), '{ max: 4 }'],
  ['semaphore(key)', box => box.semaphore('s'), '{ max: 4 }'],
  ['acquire(number) of a semaphore', box => box.semaphore('s', { max: 4 }).acquire(2), '{ permits: 2 }'],
  ['acquire(number)', box => box.mutex('a').acquire(5000), "{ wait: '5s' }"],
  ['tryAcquire(number)', box => box.mutex('a').tryAcquire(5000), "{ lease: '10s' }"],
  ['run(options, task)', box => box.mutex('a').run({ wait: 5 }, () => 1), 'run(task, options)'],
  ['run(task, number)', box => box.mutex('a').run(() => 1, 5000), "{ wait: '5s' }"],
  ['transaction(key, task)', box => box.store('s').transaction('a', () => 1), "['a']"],
  ['transaction(task)', box => box.store('s').transaction(() => 1), 'transaction(keys, task, options)'],
  ['list(prefix)', box => box.store('s').list('a').next(), "{ prefix: 'a' }"],
  ['limiter(name, number, duration)', box => box.limiter('api', 10, '1m'), "{ limit: 10, per: '1m' }"],
  ['run() of a limiter', box => box.limiter('api', { limit: 1, per: '1s' }).run(), 'run(task, n, options)'],
  ['lead(options, task)', box => box.election('e').lead({}, () => 1), 'lead(task, options)'],
  ['schedule(name, task)', box => box.schedule('n', () => 1), 'schedule(name, times, task, options)'],
  ['oncePer(name, task)', box => box.oncePer('n', () => 1), 'oncePer(name, slots, task, options)'],
  ['close(true)', box => box.close(true), '{ drain: true }'],
]

test.each(CALLS)('%s is rejected with what to write instead', async (_, make, says) => {
  await using box = await open('memory:')
  const error = await (async () => make(box))().catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(InvalidArgumentError)
  expect((error as Error).message).toContain(says)
})

test.each<[of: string, make: (box: Any) => Any, names: readonly string[]]>([
  ['a box', box => box, ['mutex', 'store', 'close']],
  ['a mutex', box => box.mutex('k'), ['run', 'acquire', 'tryAcquire', 'isLocked']],
  ['a semaphore', box => box.semaphore('k', { max: 1 }), ['run', 'acquire', 'tryAcquire', 'isLocked']],
  ['a store', box => box.store('s'), ['get', 'put', 'transaction', 'list']],
  ['a limiter', box => box.limiter('api', { limit: 1, per: '1s' }), ['run', 'acquire', 'key']],
  ['an election', box => box.election('e'), ['lead']],
])('a method of %s that was taken from its object says how to call it', async (_, make, names) => {
  await using box = await open('memory:')
  const object = await make(box)
  for (const name of names) {
    const method = object[name]
    expect(() => method(() => 1)).toThrow(`object.${name}(…)`)
    expect(() => method(() => 1)).toThrow(InvalidArgumentError)
  }
})

test('a deadlock despite reentrant says what that needs, and has no cause', async () => {
  await using box = await open('memory:')
  const nested = (reentrant: boolean) =>
    box
      .mutex('a')
      .run(() =>
        box.mutex('a').run(() => box.mutex('a', 'b').run(() => 1, { reentrant }), { reentrant: true }),
      )
  const needs = expect.stringContaining('reentrant needs one run around it that holds all of them')
  const error: unknown = await nested(true).catch((reason: unknown) => reason)
  expect(error).toMatchObject({ code: 'DEADLOCK', taskBegan: true, message: needs })
  expect((error as Error).cause).toBeUndefined()
  const advice = expect.stringContaining('see the option reentrant')
  await expect(nested(false)).rejects.toMatchObject({ code: 'DEADLOCK', message: advice })
})
