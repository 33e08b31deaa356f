import { ClosedError, InvalidArgumentError, type ListedEntry, type ListOptions, type Store } from 'signalbox'
import { assert } from './assert.js'
import { testOn } from './boxes.js'
import { describe } from './checks.js'
import type { EngineFixture } from './fixture.js'

/** Entries of `list`. Part of the checks of P13. */
export function listing(fixture: EngineFixture): void {
  const test = testOn(fixture)

  if (fixture.hasRecords) {
    describe('list', () => {
      test('a store with records rejects it', async boxes => {
        const box = await boxes.open()
        await assert.rejects(listed(box.store('s')), InvalidArgumentError)
      })
    })
    return
  }

  describe('list', () => {
    test('it yields each value of the store once, in the order of the keys, as it is read', async boxes => {
      const [one, other] = await boxes.pair()
      const store = one.store('s')
      const values = { b: { deep: [1, null] }, a: 'text', c: 0, 'c/d': false }
      for (const [key, value] of Object.entries(values)) await store.put(key, value)
      await store.put('a', 'newer')
      await store.put('gone', 1)
      await store.delete('gone')
      for (const name of ['r', 's2', 't']) await one.store(name).put('a', 'of another store')
      const grant = await one.mutex('s/a', 's/locked').acquire()
      const entries = await listed(other.store('s'))
      assert.deepEqual(keysOf(entries), ['a', 'b', 'c', 'c/d'])
      for (const { key, value, version } of entries)
        assert.deepEqual({ value, version }, await store.get(key))
      await grant.release()
      assert.deepEqual(await listed(other.store('never written')), [])
    })

    test('the stores that have values are listed once each', async boxes => {
      const [one, other] = await boxes.pair()
      const names = ['a', 'a b', 'a.b', 'a0', 'A', 'ä', '\u{1F682}', '%2F', 'signalbox-runs']
      for (const name of names) for (const key of ['1', 'x/y']) await one.store(name).put(key, name)
      await (await one.mutex('lock/of no store').acquire()).release()
      const found: string[] = []
      for await (const name of other.stores()) found.push(name)
      assert.deepEqual(found.sort(), names.sort())
    })

    test('a prefix selects keys, whatever its characters', async boxes => {
      const [one, other] = await boxes.pair()
      const store = one.store('s*')
      const keys = [
        ...['a', 'a/b', 'a%', 'a_', 'ab', 'a*', 'a?', 'a[b]', 'a\\', "a'b", 'a"b', 'a\nb', 'a{x}', 'A', '*'],
        ...[
          '}:value:s',
          '\u{1F682} 駅',
          '\u{1F682}',
          '\uE000',
          '\uFFFD',
          '\uFFFF',
          '\uFFFF\uFFFF',
          '\u{10FFFF}',
          '\u{10FFFF}x',
          '..',
        ],
      ]
      await Promise.all(keys.map(key => store.put(key, key)))
      await one.store('s+').put('a', 'of another store')
      const all = await listed(other.store('s*'))
      assert.deepEqual(keysOf(all).sort(), [...keys].sort())
      for (const prefix of [...keys, 'a', 'z', 'a\\b']) {
        const entries = await listed(other.store('s*'), { prefix })
        assert.deepEqual(
          keysOf(entries),
          keysOf(all).filter(key => key.startsWith(prefix)),
        )
      }
      for (const [index, key] of keysOf(all).entries())
        assert.deepEqual(
          keysOf(await listed(other.store('s*'), { after: key })),
          keysOf(all).slice(index + 1),
        )
    })

    test('a viewer goes on after the last key that it has seen', async boxes => {
      const box = await boxes.open()
      const store = box.store('s')
      const keys = Array.from({ length: 600 }, (_, index) => `key ${String(index).padStart(3, '0')}`)
      for (let at = 0; at < keys.length; at += 100) {
        const some = keys.slice(at, at + 100)
        await store.transaction(some, transaction => some.forEach(key => transaction.put(key, at)))
      }
      assert.deepEqual(keysOf(await listed(store)), keys)
      const seen: string[] = []
      for (;;) {
        const page = keysOf(await listed(store, { prefix: 'key', after: seen.at(-1), limit: 170 }))
        seen.push(...page)
        if (page.length < 170) break
      }
      assert.deepEqual(seen, keys)
      assert.deepEqual(keysOf(await listed(store, { after: 'key 5985' })), ['key 599'])
      assert.deepEqual(keysOf(await listed(store, { prefix: 'key 1', after: 'key 0' })), keys.slice(100, 200))
      assert.deepEqual(await listed(store, { prefix: 'key 1', after: 'key 2' }), [])
    })

    test('deleted values do not count towards a limit', async boxes => {
      const [one, other] = await boxes.pair()
      const store = one.store('s')
      const keys = Array.from({ length: 300 }, (_, index) => `a${index}`)
      await store.transaction(keys, transaction => keys.forEach(key => transaction.put(key, 1)))
      await store.transaction(keys, transaction => keys.forEach(key => transaction.delete(key)))
      await store.put('b', 2)
      await store.put('c', 3)
      assert.deepEqual(keysOf(await listed(other.store('s'), { limit: 1 })), ['b'])
      assert.deepEqual(keysOf(await listed(other.store('s'))), ['b', 'c'])
    })

    test('it shows when a value was written, if the engine knows', async boxes => {
      const box = await boxes.open()
      const store = box.store('s')
      await store.put('a', 1)
      await store.put('b', 2)
      const [a, b] = await listed(store)
      if (!fixture.knowsChanges) {
        assert.deepEqual([a!.changed, b!.changed], [undefined, undefined])
        return
      }
      assert.below(Math.abs(Date.now() - a!.changed!.getTime()), 20_000)
      assert.atLeast(b!.changed!.getTime(), a!.changed!.getTime())
      const again = store.transaction(['a', 'b'], transaction => transaction.put('b', 3), { id: 'change' })
      assert.has(await again, { applied: true })
      const [unchanged, changed] = await listed(store)
      // An engine that has recorded the ID with the key of `a` may not know it any more.
      if (unchanged!.changed) assert.deepEqual(unchanged!.changed, a!.changed)
      assert.atLeast(changed!.changed!.getTime(), b!.changed!.getTime())
    })

    test('invalid options and closed boxes are rejected', async boxes => {
      const box = await boxes.open()
      const store = box.store('s')
      const invalid = [{ limit: 0 }, { limit: 1.5 }, { prefix: 1 }, { after: '\0' }, { start: 'a' }, null]
      for (const options of invalid)
        await assert.rejects(listed(store, options as ListOptions), InvalidArgumentError)
      await box.close()
      await assert.rejects(listed(store), ClosedError)
    })
  })
}

/** Returns all entries that `list` yields. */
export async function listed(store: Store, options?: ListOptions): Promise<ListedEntry[]> {
  const entries: ListedEntry[] = []
  for await (const entry of store.list(options)) entries.push(entry)
  return entries
}

export function keysOf(entries: readonly ListedEntry[]): string[] {
  return entries.map(({ key }) => key)
}
