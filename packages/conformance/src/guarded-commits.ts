import { assert } from './assert.js'
import { ConflictError, IndeterminateError, LostError, type StoreOptions } from 'signalbox'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { locks, nothingHeld, until } from './time.js'

/** A commit is refused when its locks were lost or a value was changed without them. */
export function guardedCommits(fixture: EngineFixture, options: StoreOptions): void {
  const test = testOn(fixture)
  // These disturb the messages between the box and the engine, which records do not use.
  const testOfEngine = test.skipIf(fixture.hasRecords)

  test('a write that bypasses the lock causes a conflict that names the expected and the found value', async boxes => {
    const [one, other] = await boxes.pair()
    const store = one.store('s', options)
    const version = await store.put('a', { sum: 1 })
    let between = 0
    const writing = store.transaction(['a', 'b'], async transaction => {
      between = await other.store('s').put('a', { sum: 5 })
      transaction.put('a', { sum: 2 })
      transaction.put('b', 'written')
    })
    await assert.rejects(writing, ConflictError)
    await assert.rejects(writing, {
      code: 'CONFLICT',
      key: 'a',
      expected: { value: { sum: 1 }, version },
      found: { value: { sum: 5 }, version: between },
    })
    await assert.rejects(writing, /a.*"sum":1.*"sum":5/s)
    assert.deepEqual((await store.get('a'))!.value, { sum: 5 })
    assert.equal(await store.get('b'), undefined)
    await nothingHeld(one)
  })

  test('a write that bypasses the lock causes a conflict for a key that was read, absent or deleted', async boxes => {
    const [one, other] = await boxes.pair()
    const store = one.store('s', options)
    await store.put('read', 1)
    const cases: [() => Promise<unknown>, unknown, unknown][] = [
      [() => other.store('s').put('read', 2), 1, 2],
      [() => other.store('s').put('absent', 'made'), undefined, 'made'],
      [() => other.store('s').delete('read'), 2, undefined],
    ]
    for (const [intercept, expected, found] of cases) {
      const writing = store.transaction(['read', 'absent', 'written'], async transaction => {
        transaction.get('read')
        transaction.get('absent')
        await intercept()
        transaction.put('written', 1)
      })
      await assert.rejects(writing, {
        code: 'CONFLICT',
        expected: { value: expected },
        found: { value: found },
      })
    }
    assert.equal(await store.get('written'), undefined)
  })

  test('a commit whose locks were lost does not overwrite a later holder', async boxes => {
    const [one, other] = await boxes.pair()
    const store = one.store('s', options)
    const taken = store.transaction(['key', 'more'], async transaction => {
      transaction.put('key', 'late')
      const report = (await locks(other, 's/key'))[0]!
      await other.forceRelease('s/key', report.holders[0]!.token!)
      await other.store('s').transaction(['key'], later => later.put('key', 'of the later holder'))
    })
    await assert.rejects(taken, LostError)
    assert.equal((await store.get('key'))!.value, 'of the later holder')
  })

  testOfEngine(
    'the engine refuses a commit whose locks are lost although its box does not know it',
    async boxes => {
      const other = await boxes.open()
      const [box, engine] = await boxes.withFaults()
      const store = box.store('s', options)
      engine.delivers = () => false
      for (const later of [true, false]) {
        const taken = store.transaction(['key'], async transaction => {
          const report = (await locks(other, 's/key'))[0]!
          await other.forceRelease('s/key', report.holders[0]!.token!)
          // This transaction writes nothing, so no version shows it.
          if (later) await other.store('s').transaction(['key'], () => undefined)
          transaction.put('key', 'late')
        })
        await assert.rejects(taken, LostError)
      }
      assert.equal(engine.count('commit'), 2)
      assert.equal(await store.get('key'), undefined)
    },
  )

  test('a commit whose locks were lost writes nothing, although no other caller came', async boxes => {
    const [one, other] = await boxes.pair()
    const store = one.store('s', options)
    const taken = store.transaction(['key'], async transaction => {
      transaction.put('key', 'late')
      await other.revoke(one.session)
      // Records do not know the locks, so the box has to refuse the commit.
      if (fixture.hasRecords) await until('the box has learned of the loss', () => transaction.signal.aborted)
    })
    await assert.rejects(taken, LostError)
    assert.equal(await store.get('key'), undefined)
  })

  testOfEngine(
    'a commit without an answer rejects as indeterminate, or is settled by its id',
    async boxes => {
      const other = await boxes.open()
      const [box, engine] = await boxes.withFaults()
      const store = box.store('s', options)
      let losses = 0
      engine.intercept = async (operation, execute) => {
        const outcome = await execute()
        if (operation.type === 'commit' && losses-- > 0) throw new IndeterminateError('the answer was lost')
        return outcome
      }
      const add = (lost: number, id?: string) => {
        losses = lost
        return store.transaction(
          ['sum'],
          transaction => {
            transaction.put('sum', (transaction.get<number>('sum') ?? 0) + 1)
          },
          { id },
        )
      }
      await assert.rejects(add(1), IndeterminateError)
      assert.has(await add(1, 'x'), { applied: true })
      assert.equal((await other.store('s').get('sum'))!.value, 2)
      assert.deepEqual(await add(0, 'x'), { applied: false })
      await nothingHeld(other)
    },
  )
}
