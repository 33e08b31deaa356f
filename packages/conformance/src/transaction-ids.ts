import { assert } from './assert.js'
import type { Box, StoreOptions, Transaction, TransactionPart } from 'signalbox'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'

/** A transaction with an ID, or a part of one with an ID, happens once. */
export function transactionIds(fixture: EngineFixture, options: StoreOptions): void {
  const test = testOn(fixture)

  test('an ID makes a transaction happen once', async boxes => {
    const [one, other] = await boxes.pair()
    let runs = 0
    const commit = (box: Box, id: string) =>
      box.store('s', options).transaction(
        ['count'],
        transaction => {
          runs++
          transaction.put('count', (transaction.get<number>('count') ?? 0) + 1)
        },
        { id },
      )
    assert.has(await commit(one, 'x'), { applied: true })
    assert.deepEqual(await commit(one, 'x'), { applied: false })
    assert.deepEqual(await commit(other, 'x'), { applied: false })
    assert.has(await commit(other, 'y'), { applied: true })
    const outcomes = await Promise.all([one, other, one, other].map(box => commit(box, 'z')))
    assert.hasLength(
      outcomes.filter(({ applied }) => applied),
      1,
    )
    assert.equal((await one.store('s').get('count'))!.value, 3)
    assert.equal(runs, 3)
  })

  test('an ID is remembered after its key was deleted', async boxes => {
    const [one, other] = await boxes.pair()
    const move = (box: Box) =>
      box.store('s', options).transaction(
        ['train', 'sum'],
        transaction => {
          transaction.delete('train')
          transaction.put('sum', (transaction.get<number>('sum') ?? 0) + 1)
        },
        { id: 'delete the train' },
      )
    await one.store('s').put('train', 'here')
    assert.has(await move(one), { applied: true })
    assert.equal(await one.store('s').get('train'), undefined)
    assert.deepEqual(await move(other), { applied: false })
    await one.store('s').put('train', 'made again')
    assert.deepEqual(await move(one), { applied: false })
    assert.equal((await one.store('s').get('sum'))!.value, 1)
  })

  test('an ID belongs to the first named key, not to all', async boxes => {
    const box = await boxes.open()
    const store = box.store('s', options)
    const run = (...keys: string[]) => store.transaction(keys, () => 'done', { id: 'same' })
    assert.has(await run('b', 'a'), { applied: true })
    assert.has(await run('a', 'b'), { applied: true })
    assert.deepEqual(await run('b'), { applied: false })
  })

  test('each part of a transaction happens once, also when it is repeated with other parts', async boxes => {
    const [one, other] = await boxes.pair()
    const count = async (box: Box, ...ids: string[]) => {
      const outcome = await box.store('s', options).transaction(
        ['sum'],
        transaction => {
          const fresh = ids.filter(id => !transaction.committed(id))
          transaction.put('sum', (transaction.get<number>('sum') ?? 0) + fresh.length)
          return fresh
        },
        { id: ids.map(id => ({ id, key: 'sum' })) },
      )
      return outcome.applied ? outcome.result : undefined
    }
    assert.deepEqual(await count(one, 'a', 'b'), ['a', 'b'])
    assert.deepEqual(await count(other, 'b', 'c'), ['c'])
    assert.equal(await count(one, 'c', 'a'), undefined)
    assert.equal((await one.store('s').get('sum'))!.value, 3)
  })

  test('a part belongs to its key, whichever other keys the transaction has', async boxes => {
    const [one, other] = await boxes.pair()
    const run = async (box: Box, parts: readonly TransactionPart[]) => {
      const keys = parts.map(({ key }) => key)
      const task = (transaction: Transaction) => parts.filter(({ id }) => !transaction.committed(id)).length
      const outcome = await box.store('s', options).transaction(keys, task, { id: parts })
      return outcome.applied ? outcome.result : undefined
    }
    const [a, b, c] = [partOf('a'), partOf('b'), partOf('c')]
    assert.equal(await run(one, [a, b]), 2)
    assert.equal(await run(other, [b]), undefined)
    assert.equal(await run(other, [c, b]), 1)
    assert.equal(await run(one, [c, a]), undefined)
    assert.equal(await run(one, [{ key: 'a', id: b.id }]), 1)
    const store = one.store('s', options)
    const astray = store.transaction(['a'], () => undefined, { id: [b] })
    await assert.rejects(astray, { code: 'INVALID_ARGUMENT', key: 'b' })
  })

  test('a transaction that failed does not use up its ID', async boxes => {
    const box = await boxes.open()
    const store = box.store('s', options)
    const failing = store.transaction(['a'], () => Promise.reject(new Error('failed')), { id: 'x' })
    await assert.rejects(failing, /failed/)
    assert.has(await store.transaction(['a'], () => 1, { id: 'x' }), { applied: true })
  })
}

function partOf(key: string): TransactionPart {
  return { key, id: `of ${key}` }
}
