import type { Box, Store } from 'signalbox'
import { testOn } from './boxes.js'
import { describe } from './checks.js'
import { assert } from './assert.js'
import type { EngineFixture } from './fixture.js'
import { pause } from './time.js'

/** The shortest retention of an ID, in milliseconds. */
const SHORT = 1000
const LONG = 86_400_000
/** Longer than {@link SHORT}, in milliseconds. */
const WAIT = SHORT + 300
/** Number of parts of one transaction. */
const PARTS = 300

/** Changes of a key that keeps an ID for a long time. Each leaves the key absent. */
const changes: readonly (readonly [name: string, change: (store: Store, key: string) => Promise<unknown>])[] =
  [
    ['a deletion with a shorter retention', (store, key) => deleted(store, key, SHORT)],
    [
      'deletions with a longer retention and then a shorter one',
      async (store, key) => {
        await deleted(store, key, 2 * LONG)
        await store.put(key, 'again')
        await deleted(store, key, SHORT)
      },
    ],
    [
      'a put, a compare-and-set, and a deletion outside of transactions',
      async (store, key) => {
        const version = await store.put(key, 'put')
        await store.compareAndSet(key, version, 'set')
        await store.delete(key)
      },
    ],
    [
      'creation and deletion, again and again',
      async (store, key) => {
        for (let round = 0; round < 3; round++) {
          await deleted(store, key, SHORT)
          await store.compareAndSet(key, 0, round)
        }
        await deleted(store, key, SHORT)
      },
    ],
    [
      'a later transaction with a shorter retention and an id of its own',
      async (store, key) => {
        const later = (id: string) =>
          store.transaction([key], transaction => transaction.delete(key), { id, retention: SHORT })
        await later('later')
        await later('latest')
      },
    ],
    [
      'a deletion together with another key',
      (store, key) =>
        store.transaction(
          [`${key}, beside`, key],
          transaction => {
            transaction.put(`${key}, beside`, 'written')
            transaction.delete(key)
          },
          { retention: SHORT },
        ),
    ],
  ]

/** P13: an ID is kept for the retention of its own transaction. */
export function keptIds(fixture: EngineFixture): void {
  const test = testOn(fixture)
  describe('P13 commits are atomic and durable', () => {
    test('an ID is kept for its own retention, regardless of its key', async boxes => {
      const [one, other] = await boxes.pair()
      const store = one.store('s')
      for (const [key, change] of changes) {
        assert.equal(await apply(one, key, 'first', LONG), true)
        assert.equal(await apply(one, key, 'second', 2 * LONG), true)
        await change(store, key)
      }
      await pause(WAIT)
      // IDs outlive their box, too.
      await one.close()
      // At the latest, the next write drops expired IDs.
      await deleted(other.store('s'), 'written later', SHORT)
      const again: string[] = []
      for (const [key] of changes)
        for (const id of ['first', 'second'])
          if (await apply(other, key, id, SHORT)) again.push(`${id} after ${key}`)
      assert.deepEqual(again, [])
    })

    test('an ID is kept until its retention is over', async boxes => {
      const box = await boxes.open()
      const begun = performance.now()
      const retention = 2 * WAIT
      assert.equal(await apply(box, 'key', 'id', retention), true)
      await pause(WAIT)
      const isApplied = await apply(box, 'key', 'id', SHORT)
      if (performance.now() - begun < retention) assert.equal(isApplied, false)
    })

    test('all IDs of a key are kept, however many there are', async boxes => {
      const box = await boxes.open()
      const parts = Array.from({ length: PARTS }, (_, index) => ({ key: 'key', id: `part ${index}` }))
      await box.store('s').transaction(['key'], transaction => transaction.put('key', 1), { id: parts })
      await box.store('s').transaction(
        ['key'],
        transaction => {
          const fresh = parts.filter(({ id }) => !transaction.committed(id))
          assert.deepEqual(fresh, [])
        },
        { id: [...parts, { key: 'key', id: 'another' }] },
      )
    })
  })
}

/** Writes a key with an ID. Returns whether the write was applied. */
async function apply(box: Box, key: string, id: string, retention: number): Promise<boolean> {
  const write = box.store('s').transaction([key], transaction => transaction.put(key, id), { id, retention })
  return (await write).applied
}

function deleted(store: Store, key: string, retention: number): Promise<unknown> {
  return store.transaction([key], transaction => transaction.delete(key), { retention })
}
