import { expect, test } from 'vitest'
import { Box } from '../../../src/box.js'
import { VirtualClock } from '../../../src/base/clock.js'
import { ScriptedEngine, settle } from '../core/scripted-engine.js'

async function start() {
  const clock = new VirtualClock(1000)
  const engine = new ScriptedEngine()
  const box = await Box.join(engine, clock)
  const store = box.store('s')
  /** Runs a transaction that writes its keys. */
  const write = (keys: string[], options?: { wait?: number; signal?: AbortSignal }) =>
    store.transaction(
      keys,
      transaction => {
        for (const key of keys) transaction.put(key, 1)
      },
      options,
    )
  /** Grants the oldest request. */
  const grant = async (): Promise<void> => {
    const { operation, answer } = engine.take('enqueue')
    const values = operation.read!.keys.map(() => ({ value: undefined, version: 0 }))
    answer({ state: 'held', id: operation.request.id, number: 1, read: { values, seen: [] } })
    await settle()
  }
  const commit = async (): Promise<void> => {
    const { operation, answer } = engine.take('commit')
    answer({ state: 'committed', versions: operation.writes.map(() => 1) })
    await settle()
  }
  return { clock, engine, write, grant, commit }
}

test('a transaction asks for its keys together with the commit of the one before it that shares a key', async () => {
  const { engine, write, grant, commit } = await start()
  const all = [write(['a']), write(['a', 'b']), write(['b']), write(['c'])]
  await settle()
  expect(engine.words).toBe('enqueue enqueue')
  await grant()
  expect(engine.words).toBe('enqueue enqueue commit enqueue')
  await grant()
  await grant()
  expect(engine.words).toBe('enqueue enqueue commit enqueue commit commit enqueue')
  await grant()
  for (const _ of all) await commit()
  await Promise.all(all)
})

test('a transaction that the engine keeps waiting does not keep others back for long', async () => {
  const { clock, engine, write, grant, commit } = await start()
  const all = [write(['a']), write(['a', 'b'])]
  await settle()
  clock.advance(249)
  await settle()
  expect(engine.words).toBe('enqueue')
  clock.advance(1)
  await settle()
  expect(engine.words).toBe('enqueue enqueue')
  for (const _ of all) await grant()
  for (const _ of all) await commit()
  await Promise.all(all)
})

test('a transaction that was kept back ends its wait in time, and leaves its place to the next', async () => {
  const { clock, engine, write, grant, commit } = await start()
  const first = write(['a'])
  const second = write(['a', 'b'], { wait: 100 })
  const third = write(['b'])
  await settle()
  clock.advance(100)
  await expect(second).rejects.toMatchObject({ code: 'TIMED_OUT', taskBegan: false })
  await settle()
  expect(engine.words).toBe('enqueue enqueue')
  await grant()
  await grant()
  for (const _ of [first, third]) await commit()
  await Promise.all([first, third])
})
