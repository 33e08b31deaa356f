import { describe } from './checks.js'
import { assert } from './assert.js'
import { InvalidArgumentError, type Box } from 'signalbox'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'

/** Values: versions, compare-and-set, lengths of keys, and values that outlive their boxes. */
export function values(fixture: EngineFixture): void {
  const test = testOn(fixture)

  describe('values', () => {
    test('any box reads a value as it was written, and every write has a new version', async boxes => {
      const [one, other] = await boxes.pair()
      const values = [0, -1.5, '', 'text with \u{1F682} and \0', true, null, [], {}, { a: [1, { b: null }] }]
      const versions = new Set<number>()
      for (const value of values) {
        const version = await one.store('s').put('key', value)
        const entry = await other.store('s').get('key')
        assert.deepEqual(entry, { value, version })
        versions.add(version)
      }
      assert.equal(versions.size, values.length)
      assert.deepEqual(
        [...versions],
        [...versions].sort((a, b) => a - b),
      )
    })

    test('an absent key has no entry, and stores of different names share nothing', async boxes => {
      const box = await boxes.open()
      assert.equal(await box.store('s').get('key'), undefined)
      await box.store('s').put('key', 1)
      assert.equal(await box.store('t').get('key'), undefined)
      assert.equal(await box.store('s').get('other'), undefined)
    })

    test('a read value is a copy', async boxes => {
      const box = await boxes.open()
      const written = { list: [1] }
      await box.store('s').put('key', written)
      written.list.push(2)
      const read = (await box.store('s').get<{ list: number[] }>('key'))!.value
      read.list.push(3)
      assert.deepEqual((await box.store('s').get('key'))!.value, { list: [1] })
    })

    test('no version is used twice, also over deletions and closed boxes', async boxes => {
      const [one, other] = await boxes.pair()
      const store = one.store('s')
      const versions: number[] = []
      for (let round = 0; round < 4; round++) {
        versions.push(await store.put('key', round))
        assert.equal(await other.store('s').delete('key'), true)
        assert.equal(await store.get('key'), undefined)
      }
      await boxes.closeAll()
      versions.push(await (await boxes.open()).store('s').put('key', 'after all were closed'))
      assert.equal(new Set(versions).size, 5)
      assert.deepEqual(
        versions,
        [...versions].sort((a, b) => a - b),
      )
    })

    test('a version from before a deletion never matches again', async boxes => {
      const box = await boxes.open()
      const store = box.store('s')
      const version = await store.put('key', 'first')
      await store.delete('key')
      await store.put('key', 'first')
      assert.equal(await store.compareAndSet('key', version, 'late'), undefined)
      assert.equal(await store.delete('key', version), false)
      assert.equal((await store.get('key'))!.value, 'first')
    })

    test('compare-and-set writes only over the version that it names, 0 for an absent key', async boxes => {
      const box = await boxes.open()
      const store = box.store('s')
      assert.equal(await store.compareAndSet('key', 7, 'wrong'), undefined)
      const first = await store.compareAndSet('key', 0, 'first')
      assert.above(first, 0)
      assert.equal(await store.compareAndSet('key', 0, 'again'), undefined)
      const second = await store.compareAndSet('key', first!, 'second')
      assert.above(second, first)
      assert.equal(await store.compareAndSet('key', first!, 'third'), undefined)
      assert.deepEqual(await store.get('key'), { value: 'second', version: second })
      assert.equal(await store.delete('key', first), false)
      assert.equal(await store.delete('key', second), true)
      assert.equal(await store.delete('key'), true)
      assert.above(await store.compareAndSet('key', 0, 'new'), second)
    })

    test('compare-and-set loses no update', async boxes => {
      const add = async (box: Box): Promise<void> => {
        const store = box.store('s')
        for (let round = 0; round < 6;) {
          const entry = await store.get<number>('sum')
          if (
            (await store.compareAndSet('sum', entry?.version ?? 0, (entry?.value ?? 0) + 1)) !== undefined
          ) {
            round++
          }
        }
      }
      const all = await boxes.several(3)
      await Promise.all([...all, ...all].map(add))
      assert.equal((await all[0]!.store('s').get('sum'))!.value, 36)
    })

    test('all of many concurrent writes of one key are applied, also with those of another box', async boxes => {
      const all = await boxes.several(2)
      const [one] = all.map(box => box.store('s'))
      const numbers = Array.from({ length: 200 }, (_, index) => index)
      const alone = await Promise.all(numbers.map(number => one!.put('key', number)))
      assert.equal(new Set(alone).size, 200)
      const { value, version } = (await one!.get<number>('key'))!
      assert.equal(version, Math.max(...alone))
      assert.equal(alone[value], version)
      const writing = all.flatMap(box =>
        numbers.slice(0, 30).map(number => box.store('s').put('key', number)),
      )
      const together = await Promise.all(writing)
      assert.equal(new Set([...alone, ...together]).size, 260)
      assert.equal((await one!.get('key'))!.version, Math.max(...together))
    })

    // Values in records have the limit of the records for `put`, and that of the locks as well for a transaction.
    test.runIf(!fixture.hasRecords)('put and transaction accept the same lengths of keys', async boxes => {
      const box = await boxes.open()
      const store = box.store('s')
      for (const length of [1000, 1022, 1023, 1024]) {
        const key = 'x'.repeat(length)
        // One after the other: at the same time, the transaction may find that the value has changed.
        const [put] = await Promise.allSettled([store.put(key, 1)])
        const writing = store.transaction([key], transaction => transaction.put(key, 2))
        const outcomes = [put, ...(await Promise.allSettled([writing]))]
        // The limit depends on the engine, but is the same for both.
        assert.equal(new Set(outcomes.map(({ status }) => status)).size, 1)
        for (const outcome of outcomes)
          if (outcome.status === 'rejected') assert.isA(outcome.reason, InvalidArgumentError)
      }
    })

    test('committed values remain after all boxes were closed', async boxes => {
      const box = await boxes.open()
      await box.store('s').put('put', 1)
      await box.store('s').transaction(['a', 'b'], transaction => {
        transaction.put('a', 'A')
        transaction.put('b', 'B')
      })
      await boxes.closeAll()
      const store = (await boxes.open()).store('s')
      assert.equal((await store.get('put'))!.value, 1)
      assert.equal((await store.get('a'))!.value, 'A')
      assert.equal((await store.get('b'))!.value, 'B')
    })
  })
}
