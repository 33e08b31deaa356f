import { expect, test } from 'vitest'
import { Box } from '../../../src/box.js'
import { VirtualClock } from '../../../src/base/clock.js'
import { FaultInjectingEngine } from '../../../packages/conformance/src/fault-injecting-engine.js'
import { openMemory } from '../../../src/engines/memory/memory-engine.js'
import type { ReadSet } from '../../../src/engine/contract.js'

test('a value that names the keys of several transactions of a group is asked for once', async () => {
  const engine = new FaultInjectingEngine(openMemory('memory:group'))
  const box = await Box.join(engine, new VirtualClock())
  const store = box.store('s', { group: { maxSize: 8, maxTime: 1000 } })
  await store.put('pointer', 'target')
  engine.operations.length = 0
  const add = () =>
    store.transaction(
      async read => [(await read<string>('pointer'))!, (await read<string>('other')) ?? 'none'],
      transaction => transaction.put('target', (transaction.get<number>('target') ?? 0) + 1),
    )
  await Promise.all([add(), add(), add()])
  const reads = engine.operations.filter(({ type }) => type === 'read') as readonly ReadSet[]
  expect(reads.map(({ keys }) => keys)).toEqual([['s/pointer'], ['s/other']])
  expect(await store.get('target')).toMatchObject({ value: 3 })
  await box.close()
})
