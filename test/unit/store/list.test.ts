import { expect, test } from 'vitest'
import { Box } from '../../../src/box.js'
import { systemClock } from '../../../src/base/clock.js'
import { IndeterminateError } from '../../../src/base/errors.js'
import { openMemory } from '../../../src/engines/memory/memory-engine.js'
import { FaultInjectingEngine } from '../../../packages/conformance/src/fault-injecting-engine.js'
import { keysOf, listed } from '../../../packages/conformance/src/listing.js'

/** Opens a box that records its operations. */
async function recorded(url: string) {
  const engine = new FaultInjectingEngine(openMemory(url))
  const box = await Box.join(engine, systemClock)
  /** Returns the number of values of each read since the last call. */
  const reads = (): number[] =>
    engine.operations.splice(0).flatMap(each => (each.type === 'read' ? [each.keys.length] : []))
  return { engine, box, reads, [Symbol.asyncDispose]: () => box.close() }
}

test('values are read in parts: many short ones, and one long one at a time', async () => {
  await using place = await recorded('memory:parts')
  const { box, reads } = place
  const [short, long] = [box.store('short'), box.store('long')]
  for (let index = 0; index < 600; index++) await short.put(String(index).padStart(3, '0'), index)
  for (let index = 0; index < 20; index++)
    await long.put(String.fromCharCode(97 + index), 'x'.repeat(3 << 20))
  reads()
  expect(await listed(short)).toHaveLength(600)
  expect(reads()).toEqual([16, 64, 256, 256, 8])
  expect(await listed(long)).toHaveLength(20)
  expect(reads()).toEqual([16, 1, 1, 1, 1])
})

test('no more is read than is asked for, or than the loop takes', async () => {
  await using place = await recorded('memory:lazy')
  const { box, engine, reads } = place
  const store = box.store('s')
  for (let index = 0; index < 50; index++) await store.put(`key ${index}`, index)
  reads()
  expect(await listed(store, { limit: 3 })).toHaveLength(3)
  expect(reads()).toEqual([3])
  for await (const { key } of store.list()) {
    expect(key).toBe('key 0')
    break
  }
  expect(engine.count('list')).toBe(1)
  expect(reads()).toEqual([16])
})

test('a value that is deleted after its key was listed is left out, and another one takes its place', async () => {
  await using place = await recorded('memory:deleted meanwhile')
  const { box, engine } = place
  const store = box.store('s')
  for (const key of ['a', 'b', 'c']) await store.put(key, key)
  engine.intercept = async (operation, execute) => {
    if (operation.type === 'read' && operation.keys.includes('s/a')) await box.store('s').delete('a')
    return execute()
  }
  expect(keysOf(await listed(store, { limit: 2 }))).toEqual(['b', 'c'])
})

test('values that are too long to be read together are read one by one', async () => {
  await using place = await recorded('memory:together')
  const { box, engine, reads } = place
  const store = box.store('s')
  for (let index = 0; index < 100; index++) await store.put(String(index).padStart(2, '0'), index)
  engine.intercept = (operation, execute) => {
    const isTooMuch = operation.type === 'read' && operation.keys.length > 16
    return isTooMuch ? Promise.reject(new IndeterminateError('no answer')) : execute()
  }
  reads()
  expect(await listed(store)).toHaveLength(100)
  expect(reads().slice(0, 6)).toEqual([16, 64, 1, 4, 16, 63])
})

test('many keys without values cost a few searches, also with a small limit', async () => {
  await using place = await recorded('memory:gone')
  const { box, engine } = place
  await box.store('s').put('z', 1)
  const all = [...Array.from({ length: 20_000 }, (_, index) => `s/a${String(index).padStart(5, '0')}`), 's/z']
  engine.intercept = (operation, execute) => {
    if (operation.type !== 'list') return execute()
    const from = all.findIndex(key => key > operation.after)
    return Promise.resolve(from < 0 ? [] : all.slice(from, from + operation.limit))
  }
  expect(keysOf(await listed(box.store('s'), { limit: 1 }))).toEqual(['z'])
  // 256, 1024, 4096, 10,000, and the rest.
  expect(engine.count('list')).toBe(5)
})

test('names that no store uses are left out', async () => {
  await using place = await recorded('memory:foreign')
  const { box, engine, reads } = place
  await box.store('s').put('a', 1)
  engine.intercept = (operation, execute) => {
    const foreign = ['s/', 's/\0', 's/a', `s/${'b'.repeat(2000)}`, 's/\uD800']
    return operation.type === 'list' ? Promise.resolve(foreign) : execute()
  }
  reads()
  expect(keysOf(await listed(box.store('s')))).toEqual(['a'])
  expect(reads()).toEqual([1])
})
