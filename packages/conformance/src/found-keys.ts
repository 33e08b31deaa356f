import { ConflictError, type Store } from 'signalbox'
import { testOn } from './boxes.js'
import { describe } from './checks.js'
import { assert } from './assert.js'
import type { EngineFixture } from './fixture.js'
import { nothingHeld } from './time.js'

const group = { maxSize: 8, maxTime: 20 }

/**
 * P13: a transaction may name its keys from a value. This value must not change before the commit, even if the
 * transaction does not name its key.
 */
export function foundKeys(fixture: EngineFixture): void {
  describe('P13 commits are atomic and durable', () => {
    const test = testOn(fixture)

    for (const [manner, options] of [
      ['each on its own', {}],
      ['in groups', { group }],
    ] as const) {
      describe(`keys that are named from values, ${manner}`, () => {
        test('the keys are named again when the pointer changes before the commit', async boxes => {
          const [one, other] = await boxes.pair()
          const store = one.store('s', options)
          const changes: readonly (readonly [string | undefined, string | undefined])[] = [
            ['A', 'B'],
            [undefined, 'B'],
            ['A', undefined],
          ]
          for (const [before, after] of changes) {
            await point(other.store('s'), before)
            let runs = 0
            const outcome = await follow(store, async () => {
              if (++runs === 1) await point(other.store('s'), after)
            })
            assert.has(outcome, { applied: true, result: place(after), attempts: 2 })
            assert.equal(await store.get(place(before)), undefined)
            assert.equal(await store.delete(place(after)), true)
          }
          await nothingHeld(other)
        })

        test('the keys are named again when a pointer that is itself named changes before the commit', async boxes => {
          const [one, other] = await boxes.pair()
          for (const [index, others] of [[], ['beside']].entries()) {
            await point(other.store('s'), 'A')
            let runs = 0
            const intercept = async () => {
              if (++runs === 1) await point(other.store('s'), `B${index}`)
            }
            const outcome = await follow(one.store('s', options), intercept, {
              others: ['pointer', ...others],
            })
            assert.has(outcome, { applied: true, result: place(`B${index}`), attempts: 2 })
            assert.equal(await other.store('s').get(place('A')), undefined)
          }
          let moves = 0
          const moving = follow(one.store('s', options), () => point(other.store('s'), `${++moves}`), {
            attempts: 3,
            others: ['pointer'],
          })
          await assert.rejects(moving, ConflictError)
          assert.equal(moves, 3)
          await nothingHeld(other)
        })

        test('a pointer that changes in every attempt causes a conflict, and nothing is written', async boxes => {
          const [one, other] = await boxes.pair()
          let moves = 0
          const moving = follow(one.store('s', options), () => point(other.store('s'), `${++moves}`), {
            attempts: 3,
          })
          await assert.rejects(moving, ConflictError)
          await assert.rejects(moving, /3 times/)
          for (let move = 0; move <= moves; move++)
            assert.equal(await other.store('s').get(place(move === 0 ? undefined : `${move}`)), undefined)
          assert.equal(moves, 3)
          await nothingHeld(other)
        })

        test('a pointer that does not change takes one attempt, and the transaction cannot write it', async boxes => {
          const box = await boxes.open()
          const store = box.store('s', options)
          await point(store, 'A')
          assert.has(await follow(store, () => undefined), { applied: true, attempts: 1 })
          const touching = store.transaction(
            async read => [place(await read<string>('pointer'))],
            transaction => transaction.put('pointer', 'B'),
          )
          await assert.rejects(touching, { code: 'INVALID_ARGUMENT', key: 'pointer' })
          assert.equal((await store.get('pointer'))!.value, 'A')
        })
      })
    }

    test('in a group, keys are named from what an earlier transaction wrote', async boxes => {
      const box = await boxes.open()
      const store = box.store('s', { group })
      await point(store, 'A')
      const moved = store.transaction(['pointer', place('B')], transaction => transaction.put('pointer', 'B'))
      const [, followed] = await Promise.all([moved, follow(store, () => undefined)])
      assert.has(followed, { applied: true, result: place('B') })
      assert.equal(await store.get(place('A')), undefined)
    })

    test('in a group, a pointer that changes before the commit fails no other transaction', async boxes => {
      const [one, other] = await boxes.pair()
      const store = one.store('s', { group })
      await point(store, 'A')
      let runs = 0
      const [beside, followed] = await Promise.all([
        store.transaction(['beside'], transaction => transaction.put('beside', 'written')),
        follow(store, async () => {
          if (++runs === 1) await point(other.store('s'), 'B')
        }),
      ])
      assert.has(beside, { applied: true })
      assert.has(followed, { applied: true, result: place('B') })
      assert.equal((await store.get('beside'))!.value, 'written')
      assert.equal(await store.get(place('A')), undefined)
    })
  })
}

function place(pointer: string | undefined): string {
  return `at ${pointer ?? 'nowhere'}`
}

async function point(store: Store, pointer: string | undefined): Promise<void> {
  if (pointer === undefined) await store.delete('pointer')
  else await store.put('pointer', pointer)
}

/**
 * Writes to the key that the pointer names, and returns that key.
 * @param intercept called before the transaction writes
 * @param options the number of attempts, and further keys to name
 */
function follow(
  store: Store,
  intercept: () => unknown,
  { attempts, others = [] }: { attempts?: number; others?: readonly string[] } = {},
) {
  let named = ''
  return store.transaction(
    async read => [...others, (named = place(await read<string>('pointer')))],
    async transaction => {
      const key = named
      await intercept()
      transaction.put(key, 'written')
      return key
    },
    { attempts },
  )
}
