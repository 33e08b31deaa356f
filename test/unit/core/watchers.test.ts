import { expect, onTestFinished, test } from 'vitest'
import { VirtualClock } from '../../../src/base/clock.js'
import type { Read } from '../../../src/engine/contract.js'
import { UnavailableError } from '../../../src/base/errors.js'
import { WATCH_READ_INTERVAL } from '../../../src/engine/wait-times.js'
import { Watchers } from '../../../src/core/watchers.js'
import { ScriptedEngine, settle } from './scripted-engine.js'

/** Starts watchers on a scripted engine. Records the versions that they report for each watched key. */
async function start(...keys: string[]) {
  const clock = new VirtualClock(1000)
  const engine = new ScriptedEngine()
  const watchers = new Watchers('session', operation => engine.submit(operation), clock)
  const told = new Map<string, (number | undefined)[]>(keys.map(key => [key, []]))
  const watchings = await Promise.all(
    keys.map(key => {
      const begun = watchers.watch(key, version => told.get(key)!.push(version))
      engine.take('watch').answer(undefined)
      return begun
    }),
  )
  onTestFinished(() => expect(engine.open).toBe(0))
  /** Advances to the next look, and returns the keys that it reads. */
  const looks = (): readonly string[] => {
    clock.advance(clock.nextAt()! - clock.now())
    return asked(engine)
  }
  return { clock, engine, watchers, told, watchings, looks }
}

/** Returns the keys of the current read. */
function asked(engine: ScriptedEngine): readonly string[] {
  return (engine.asked.at(-1) as Read).keys
}

/** Answers a read with one version for every key. */
async function answer(engine: ScriptedEngine, version: number): Promise<void> {
  const { operation, answer: tell } = engine.take('read')
  tell({ values: operation.keys.map(() => ({ value: '1', version })), seen: [] })
  await settle()
}

test('after `missed` the keys are read once, at once', async () => {
  const { clock, engine, watchers, told } = await start('a')
  watchers.missed()
  clock.advance(0)
  expect(asked(engine)).toEqual(['a'])
  // Changes can also be missed during a look.
  watchers.missed()
  watchers.missed()
  await answer(engine, 1)
  expect(engine.open).toBe(0)
  clock.advance(999)
  expect(engine.open).toBe(0)
  clock.advance(1)
  await answer(engine, 2)
  expect(told.get('a')).toEqual([1, 2])
  // The time of the regular look stays the same.
  expect(clock.nextAt()).toBe(1000 + WATCH_READ_INTERVAL)
})

test('a look that fails is repeated', async () => {
  const { clock, engine, told, looks } = await start('a')
  looks()
  const failedAt = clock.now()
  engine.take('read').fail(new UnavailableError('out of reach'))
  await settle()
  expect(looks()).toEqual(['a'])
  expect(clock.now() - failedAt).toBe(1000)
  await answer(engine, 1)
  expect(told.get('a')).toEqual([1])
})

test('a thousand keys are read in parts, one after another', async () => {
  const keys = Array.from({ length: 1000 }, (_, index) => `k${index}`)
  const { engine, told, looks } = await start(...keys)
  const read = [...looks()]
  while (engine.open > 0) {
    expect(engine.open).toBe(1)
    expect(asked(engine).length).toBeLessThanOrEqual(64)
    await answer(engine, 1)
    if (engine.open > 0) read.push(...asked(engine))
  }
  expect(read).toEqual(keys)
  for (const versions of told.values()) expect(versions).toEqual([1])
})

test('a key that can not be read fails its watchers only', async () => {
  const { engine, told, looks } = await start('a', 'spoiled', 'b')
  looks()
  engine.take('read').fail(new UnavailableError('not readable', { key: 'spoiled' }))
  await settle()
  expect(asked(engine)).toEqual(['a', 'b'])
  await answer(engine, 1)
  expect([...told.values()]).toEqual([[1], [undefined], [1]])
})

test('the last watcher that leaves ends the looks', async () => {
  const { clock, engine, watchers, watchings } = await start('a', 'b')
  for (const { stop } of watchings) stop()
  for (const _ of watchings) engine.take('unwatch').answer(undefined)
  watchers.missed()
  expect(clock.nextAt()).toBeUndefined()
})

test('a watcher that leaves while its key is read is not called, and no look follows', async () => {
  const { clock, engine, told, watchings, looks } = await start('a')
  looks()
  watchings[0]!.stop()
  engine.take('unwatch').answer(undefined)
  await answer(engine, 1)
  expect(told.get('a')).toEqual([])
  expect(clock.nextAt()).toBeUndefined()
})
