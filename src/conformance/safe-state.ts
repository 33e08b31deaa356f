import { getEventListeners } from 'node:events'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { describe } from './checks.js'
import { assert } from './assert.js'
import type { Box } from '../index.js'
import {
  AbortedError,
  ConflictError,
  DeadlockError,
  IndeterminateError,
  InvalidArgumentError,
  LostError,
  TimedOutError,
} from '../errors.js'
import { testOn } from './boxes.js'
import { CLAIM_WINDOW } from '../engine/index.js'
import type { EngineFixture } from './fixture.js'
import { locks, pause, queued, soFar, until } from './time.js'

/** P13: a committed change is there, and a change whose grant was lost is rejected by the store. */
export function safeState(fixture: EngineFixture): void {
  describe('P13 nothing is lost', () => {
    const test = testOn(fixture)
    // What is shown by disturbing the conversation with the engine.
    const testOfEngine = test.skipIf(fixture.hasRecords)

    describe('values', () => {
      test('a value is read as it was written, by any box, and every write has a new version', async boxes => {
        const [one, other] = await boxes.pair()
        const values = [
          0,
          -1.5,
          '',
          'text with \u{1F682} and \0',
          true,
          null,
          [],
          {},
          { a: [1, { b: null }] },
        ]
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

      test('what is read is a copy', async boxes => {
        const box = await boxes.open()
        const written = { list: [1] }
        await box.store('s').put('key', written)
        written.list.push(2)
        const read = (await box.store('s').get<{ list: number[] }>('key'))!.value
        read.list.push(3)
        assert.deepEqual((await box.store('s').get('key'))!.value, { list: [1] })
      })

      test('deleting, and writing again: no version is ever used twice', async boxes => {
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

      test('a version that was read before a deletion is never met again', async boxes => {
        const box = await boxes.open()
        const store = box.store('s')
        const version = await store.put('key', 'first')
        await store.delete('key')
        await store.put('key', 'first')
        assert.equal(await store.compareAndSet('key', version, 'late'), undefined)
        assert.equal(await store.delete('key', version), false)
        assert.equal((await store.get('key'))!.value, 'first')
      })

      test('compare-and-set writes only over the version it names, 0 for an absent key', async boxes => {
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

      test('each of many writes of one key at once is carried out, also beside those of another box', async boxes => {
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

      test('what was committed is there after all boxes were closed', async boxes => {
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

    for (const [manner, options] of [
      ['each on its own', {}],
      ['in groups', { group: { most: 8, within: 20 } }],
    ] as const) {
      describe(`transactions, ${manner}`, () => {
        test('a transaction reads, writes and deletes, and gives what its function gave', async boxes => {
          const [one, other] = await boxes.pair()
          const store = one.store('s', options)
          await store.put('a', 1)
          const outcome = await store.transaction(['a', 'b', 'c'], async transaction => {
            assert.equal(transaction.get('a'), 1)
            assert.equal(transaction.get('b'), undefined)
            transaction.put('b', { of: transaction.get('a') })
            assert.deepEqual(transaction.get('b'), { of: 1 })
            transaction.delete('a')
            assert.equal(transaction.get('a'), undefined)
            transaction.delete('c')
            transaction.assertHeld()
            assert.equal(transaction.signal.aborted, false)
            assert.above(transaction.token, 0n)
            await pause(1)
            return 'given'
          })
          assert.has(outcome, { applied: true, result: 'given', attempts: 1 })
          assert.equal(await other.store('s').get('a'), undefined)
          assert.deepEqual((await other.store('s').get('b'))!.value, { of: 1 })
          assert.deepEqual(await locks(other), [])
        })

        test('transactions of all boxes lose no update and see no half of another', async boxes => {
          const all = await boxes.several(3)
          const task = async (box: Box, index: number): Promise<void> => {
            const store = box.store('s', options)
            for (let round = 0; round < 5; round++) {
              const keys = index % 2 === 0 ? ['left', 'right'] : ['right', 'left']
              await store.transaction(keys, async transaction => {
                const left = transaction.get<number>('left') ?? 0
                assert.equal(left + (transaction.get<number>('right') ?? 0), 0)
                await pause(0)
                transaction.put('left', left + 1)
                transaction.put('right', -left - 1)
              })
            }
          }
          await Promise.all([...all, ...all, ...all].map(task))
          assert.equal((await all[0]!.store('s').get('left'))!.value, 45)
          assert.equal((await all[0]!.store('s').get('right'))!.value, -45)
          assert.deepEqual(await locks(all[0]!), [])
        })

        test('tokens of transactions rise', async boxes => {
          const all = await boxes.several(2)
          const tokens: bigint[] = []
          for (let round = 0; round < 8; round++) {
            const store = all[round % 2]!.store('s', options)
            await store.transaction(['key'], transaction => void tokens.push(transaction.token))
          }
          for (const [index, token] of tokens.entries()) if (index > 0) assert.above(token, tokens[index - 1])
        })

        test('the lock of a key is the mutex of its store and name', async boxes => {
          const [one, other] = await boxes.pair()
          const held = await other.mutex('s/key').acquire()
          const waiting = one.store('s', options).transaction(['key'], () => 'done')
          assert.equal(await soFar(waiting), 'pending')
          await queued(other, 's/key', 1)
          await held.release()
          assert.has(await waiting, { applied: true, result: 'done' })
        })

        test('a function that fails writes nothing and tells why', async boxes => {
          const box = await boxes.open()
          const store = box.store('s', options)
          await store.put('a', 'before')
          const failing = [
            store.transaction(['a', 'b'], transaction => {
              transaction.put('a', 'half')
              throw new Error('of the function')
            }),
            store.transaction(['a', 'b'], async transaction => {
              transaction.delete('a')
              await pause(1)
              throw new Error('of the function')
            }),
          ]
          await Promise.all(failing.map(one => assert.rejects(one, /of the function/)))
          assert.equal((await store.get('a'))!.value, 'before')
          assert.equal(await store.get('b'), undefined)
          await until('nothing is left', async () => (await locks(box)).length === 0)
        })

        test('a key that was not named can not be touched', async boxes => {
          const box = await boxes.open()
          const store = box.store('s', options)
          for (const touch of ['get', 'put', 'delete'] as const) {
            const touching = store.transaction(['a'], transaction => {
              transaction.put('a', 1)
              transaction[touch]('b', 1)
            })
            await assert.rejects(touching, InvalidArgumentError)
            await assert.rejects(touching, { key: 'b' })
            await assert.rejects(touching, /b.*named a/)
          }
          assert.equal(await store.get('a'), undefined)
        })

        test('a function names further keys from values that it reads', async boxes => {
          const box = await boxes.open()
          const store = box.store('s', options)
          await store.put('train', { at: 'A' })
          const outcome = await store.transaction(
            async read => ['train', `at ${(await read<{ at: string }>('train'))!.at}`, 'at B'],
            transaction => {
              transaction.put('train', { at: 'B' })
              transaction.put('at A', 'left')
              transaction.put('at B', 'arrived')
            },
          )
          assert.has(outcome, { applied: true, attempts: 1 })
          assert.equal((await store.get('at A'))!.value, 'left')
        })

        test('keys that were found by reading are found again under the lock', async boxes => {
          const [one, other] = await boxes.pair()
          const store = one.store('s', options)
          await store.put('train', 'A')
          let calls = 0
          const named: string[][] = []
          const outcome = await store.transaction(
            async read => {
              const at = await read<string>('train')
              // The train moves between the reading and the lock.
              if (++calls === 1) await other.store('s').put('train', 'B')
              named.push(['train', `at ${at!}`])
              return ['train', `at ${at!}`]
            },
            transaction => transaction.put('at B', transaction.get('train')),
          )
          assert.has(outcome, { applied: true, attempts: 2 })
          assert.deepEqual(named[0], ['train', 'at A'])
          assert.equal((await store.get('at B'))!.value, 'B')
          assert.equal(await store.get('at A'), undefined)
          await until('nothing is left', async () => (await locks(other)).length === 0)
        })

        test('keys that never hold still end in a conflict after so many attempts', async boxes => {
          const [box, other] = await boxes.pair()
          const store = box.store('s', options)
          const moving = store.transaction(
            async read => {
              const place = (await read<number>('train')) ?? 0
              await other.store('s').put('train', place + 1)
              return ['train', `place ${place}`]
            },
            () => 'never',
            { attempts: 3 },
          )
          await assert.rejects(moving, ConflictError)
          await assert.rejects(moving, /3 times/)
          await until('nothing is left', async () => (await locks(box)).length === 0)
        })

        test('an id makes it happen once', async boxes => {
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

        test('an id is remembered when its key was deleted', async boxes => {
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

        test('an id belongs to the first key that was named, not to all', async boxes => {
          const box = await boxes.open()
          const store = box.store('s', options)
          const run = (...keys: string[]) => store.transaction(keys, () => 'done', { id: 'same' })
          assert.has(await run('b', 'a'), { applied: true })
          assert.has(await run('a', 'b'), { applied: true })
          assert.deepEqual(await run('b'), { applied: false })
        })

        test('each part of a transaction happens once, whoever tries it again with others', async boxes => {
          const [one, other] = await boxes.pair()
          const count = async (box: Box, ...ids: string[]) => {
            const outcome = await box.store('s', options).transaction(
              ['sum'],
              transaction => {
                const fresh = ids.filter(id => !transaction.committed(id))
                transaction.put('sum', (transaction.get<number>('sum') ?? 0) + fresh.length)
                return fresh
              },
              { id: ids },
            )
            return outcome.applied ? outcome.result : undefined
          }
          assert.deepEqual(await count(one, 'a', 'b'), ['a', 'b'])
          assert.deepEqual(await count(other, 'b', 'c'), ['c'])
          assert.equal(await count(one, 'c', 'a'), undefined)
          assert.equal((await one.store('s').get('sum'))!.value, 3)
        })

        test('the id of a part is recorded with the key that it names', async boxes => {
          const [one, other] = await boxes.pair()
          const move = (box: Box, ...trains: string[]) =>
            box
              .store('s', options)
              .transaction(
                ['place', ...trains],
                transaction => trains.map(train => transaction.committed(`move ${train}`)),
                { id: trains.map(train => ({ id: `move ${train}`, key: train })) },
              )
          assert.has(await move(one, 'a', 'b'), { result: [false, false] })
          assert.has(await move(other, 'c', 'b'), { result: [false, true] })
          assert.deepEqual(await move(other, 'c'), { applied: false })
          const elsewhere = await other.store('s', options).transaction(['place'], () => 1, { id: 'move a' })
          assert.has(elsewhere, { applied: true })
        })

        test('a part that is left out can be tried again', async boxes => {
          const [one, other] = await boxes.pair()
          const attempt = (box: Box, leftOut: string[]) =>
            box.store('s', options).transaction(
              ['a'],
              transaction => {
                for (const id of leftOut) transaction.leaveOut(id)
                return ['x', 'y'].map(id => transaction.committed(id))
              },
              { id: ['x', 'y'] },
            )
          assert.has(await attempt(one, ['y']), { result: [false, false] })
          assert.has(await attempt(other, ['y']), { result: [true, false] })
          assert.has(await attempt(other, []), { result: [true, false] })
          assert.deepEqual(await attempt(one, []), { applied: false })
          await assert.rejects(
            one
              .store('s', options)
              .transaction(['a'], transaction => transaction.leaveOut('z'), { id: 'x y' }),
            /no part.*z/,
          )
        })

        test('an id can not be recorded with a key that was not named', async boxes => {
          const box = await boxes.open()
          const store = box.store('s', options)
          const wrong = store.transaction(['a'], () => 1, { id: [{ id: 'x', key: 'b' }] })
          await assert.rejects(wrong, InvalidArgumentError)
          await assert.rejects(wrong, /x.*with b.*named a/)
        })

        test('a transaction that failed does not use up its id', async boxes => {
          const box = await boxes.open()
          const store = box.store('s', options)
          const failing = store.transaction(['a'], () => Promise.reject(new Error('failed')), { id: 'x' })
          await assert.rejects(failing, /failed/)
          assert.has(await store.transaction(['a'], () => 1, { id: 'x' }), { applied: true })
        })

        test('a write round the lock is found, with what was expected and what is there', async boxes => {
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
          await until('nothing is left', async () => (await locks(one)).length === 0)
        })

        test('a write round the lock is found also for a key that was only read, or absent, or deleted', async boxes => {
          const [one, other] = await boxes.pair()
          const store = one.store('s', options)
          await store.put('read', 1)
          const cases: [() => Promise<unknown>, unknown, unknown][] = [
            [() => other.store('s').put('read', 2), 1, 2],
            [() => other.store('s').put('absent', 'made'), undefined, 'made'],
            [() => other.store('s').delete('read'), 2, undefined],
          ]
          for (const [meddle, expected, found] of cases) {
            const writing = store.transaction(['read', 'absent', 'written'], async transaction => {
              transaction.get('read')
              transaction.get('absent')
              await meddle()
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

        test('a commit whose locks were lost writes nothing, whatever a later holder did', async boxes => {
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
          'the engine refuses a commit whose locks are lost, although its box does not know of the loss',
          async boxes => {
            const other = await boxes.open()
            const [box, engine] = await boxes.meddled()
            const store = box.store('s', options)
            engine.hears = () => false
            for (const later of [true, false]) {
              const taken = store.transaction(['key'], async transaction => {
                const report = (await locks(other, 's/key'))[0]!
                await other.forceRelease('s/key', report.holders[0]!.token!)
                // Whoever read and wrote nothing else would not be found by its version.
                if (later) await other.store('s').transaction(['key'], () => undefined)
                transaction.put('key', 'late')
              })
              await assert.rejects(taken, LostError)
            }
            assert.equal(engine.count('commit'), 2)
            assert.equal(await store.get('key'), undefined)
          },
        )

        test('a commit whose locks were lost writes nothing, also when nobody came since', async boxes => {
          const [one, other] = await boxes.pair()
          const store = one.store('s', options)
          const taken = store.transaction(['key'], async transaction => {
            transaction.put('key', 'late')
            await other.revoke(one.session)
          })
          await assert.rejects(taken, LostError)
          assert.equal(await store.get('key'), undefined)
        })

        test('a wait bounds a transaction, an abort ends its wait; neither leaves anything', async boxes => {
          const [one, other] = await boxes.pair()
          const store = one.store('s', options)
          const held = await other.mutex('s/key').acquire()
          const controller = new AbortController()
          const { signal } = controller
          let runs = 0
          const task = (): number => runs++
          const aborted = assert.rejects(store.transaction(['key'], task, { signal }), AbortedError)
          await queued(other, 's/key', 1)
          await assert.rejects(store.transaction(['key'], task, { wait: 60 }), TimedOutError)
          await queued(other, 's/key', 1)
          controller.abort()
          await aborted
          assert.hasLength(getEventListeners(signal, 'abort'), 0)
          await queued(other, 's/key', 0)
          await held.release()
          assert.equal(runs, 0)
        })

        test('no listener stays at a signal that serves many transactions', async boxes => {
          const box = await boxes.open()
          const { signal } = new AbortController()
          const store = box.store('s', options)
          await Promise.all(
            Array.from({ length: 9 }, () => store.transaction(['key'], () => 1, { signal, wait: 10_000 })),
          )
          assert.hasLength(getEventListeners(signal, 'abort'), 0)
        })

        test('a transaction within another is told where it would wait for itself', async boxes => {
          const box = await boxes.open()
          const store = box.store('s', options)
          const outcome = await store.transaction(['a'], async transaction => {
            await assert.rejects(
              store.transaction(['a', 'b'], () => 1),
              DeadlockError,
            )
            await assert.rejects(box.mutex('s/a').acquire(), DeadlockError)
            await store.transaction(['b'], inner => inner.put('b', 'inner'))
            transaction.put('a', 'outer')
          })
          assert.equal(outcome.applied, true)
          assert.equal((await store.get('b'))!.value, 'inner')
        })

        test('a transaction works while its box drains, new ones are refused', async boxes => {
          const [one, other] = await boxes.pair()
          const store = one.store('s', options)
          let begun = false
          const working = store.transaction(['key'], async transaction => {
            begun = true
            await pause(60)
            transaction.put('key', 'drained')
          })
          await until('it has begun', () => begun)
          const closing = one.close({ drain: true })
          await assert.rejects(
            store.transaction(['other'], () => 1),
            { code: 'CLOSED' },
          )
          assert.has(await working, { applied: true })
          await closing
          assert.equal((await other.store('s').get('key'))!.value, 'drained')
        })

        testOfEngine(
          'a commit whose answer was lost is told as indeterminate, or settled by its id',
          async boxes => {
            const other = await boxes.open()
            const [box, engine] = await boxes.meddled()
            const store = box.store('s', options)
            let losses = 0
            engine.meddle = async (operation, carryOut) => {
              const outcome = await carryOut()
              if (operation.type === 'commit' && losses-- > 0)
                throw new IndeterminateError('the answer was lost')
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
            await until('nothing is left', async () => (await locks(other)).length === 0)
          },
        )
      })
    }

    describe('transactions that share a commit', () => {
      const group = { most: 4, within: 50 }

      test('they run in call order, each sees what those before it wrote', async boxes => {
        const box = await boxes.open()
        const store = box.store('s', { group })
        const seen: number[] = []
        await Promise.all(
          Array.from({ length: 30 }, () =>
            store.transaction(['sum'], async transaction => {
              const sum = transaction.get<number>('sum') ?? 0
              seen.push(sum)
              await pause(0)
              transaction.put('sum', sum + 1)
            }),
          ),
        )
        assert.deepEqual(
          seen,
          Array.from({ length: 30 }, (_, index) => index),
        )
        assert.equal((await store.get('sum'))!.value, 30)
      })

      test('many share a commit, never more than the group has', async boxes => {
        const [box, engine] = await boxes.meddled()
        const store = box.store('s', { group })
        await Promise.all(
          Array.from({ length: 40 }, (_, index) =>
            store.transaction([`key ${index}`], transaction => transaction.put(`key ${index}`, index)),
          ),
        )
        const commits = engine.operations.filter(operation => operation.type === 'commit')
        assert.atLeast(commits.length, 10)
        assert.below(commits.length, 30)
        for (const commit of commits) assert.atMost(commit.writes.length, 4)
      })

      test('one that fails leaves no trace in those that share its commit', async boxes => {
        const box = await boxes.open()
        const store = box.store('s', { group })
        const outcomes = await Promise.allSettled(
          Array.from({ length: 4 }, (_, index) =>
            store.transaction(['list', `own ${index}`], transaction => {
              transaction.put('list', [...(transaction.get<number[]>('list') ?? []), index])
              transaction.put(`own ${index}`, index)
              if (index === 1) throw new Error('failed')
            }),
          ),
        )
        assert.deepEqual(
          outcomes.map(({ status }) => status),
          ['fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
        )
        assert.deepEqual((await store.get('list'))!.value, [0, 2, 3])
        assert.equal(await store.get('own 1'), undefined)
      })

      test('a conflict of one is its own; the others of its group commit', async boxes => {
        const [one, other] = await boxes.pair()
        const store = one.store('s', { group })
        await store.put('key 2', 'before')
        const outcomes = await Promise.allSettled(
          Array.from({ length: 4 }, (_, index) =>
            store.transaction([`key ${index}`], async transaction => {
              if (index === 2) await other.store('s').put('key 2', { between: Math.random() })
              transaction.put(`key ${index}`, 'committed')
            }),
          ),
        )
        assert.deepEqual(
          outcomes.map(({ status }) => status),
          ['fulfilled', 'fulfilled', 'rejected', 'fulfilled'],
        )
        assert.has(outcomes[2], { reason: { code: 'CONFLICT', key: 'key 2' } })
        for (const index of [0, 1, 3]) assert.equal((await store.get(`key ${index}`))!.value, 'committed')
      })

      test('the same id twice in a group happens once', async boxes => {
        const box = await boxes.open()
        const store = box.store('s', { group })
        const outcomes = await Promise.all(
          Array.from({ length: 4 }, () =>
            store.transaction(
              ['sum'],
              transaction => {
                transaction.put('sum', (transaction.get<number>('sum') ?? 0) + 1)
              },
              { id: 'once' },
            ),
          ),
        )
        assert.hasLength(
          outcomes.filter(({ applied }) => applied),
          1,
        )
        assert.equal((await store.get('sum'))!.value, 1)
      })

      test('an id whose first try fails in the group is tried by the next', async boxes => {
        const box = await boxes.open()
        const store = box.store('s', { group })
        let tries = 0
        const outcomes = await Promise.allSettled(
          Array.from({ length: 3 }, () =>
            store.transaction(
              ['sum'],
              transaction => {
                if (++tries === 1) throw new Error('the first fails')
                transaction.put('sum', (transaction.get<number>('sum') ?? 0) + 1)
              },
              { id: 'once' },
            ),
          ),
        )
        assert.equal(outcomes[0]!.status, 'rejected')
        const applied = outcomes.slice(1).map(one => one.status === 'fulfilled' && one.value.applied)
        assert.deepEqual(applied.sort(), [false, true])
        assert.equal((await store.get('sum'))!.value, 1)
      })

      test('a wait counts from the call, also behind groups that take their time', async boxes => {
        const box = await boxes.open()
        const store = box.store('s', { group: { most: 2, within: 1 } })
        let ended = 0
        const slow = Array.from({ length: 12 }, () =>
          store.transaction(['key'], () => pause(60)).finally(() => ended++),
        )
        const hasty = store.transaction(['key'], () => 'in time', { wait: 100 })
        // On a busy machine it is over before anybody looks.
        hasty.catch(() => undefined)
        const controller = new AbortController()
        const aborted = store.transaction(['key'], () => 'done', { signal: controller.signal })
        const patient = store.transaction(['key'], () => 'done')
        setTimeout(() => controller.abort(), 50)
        await assert.rejects(aborted, AbortedError)
        assert.below(ended, slow.length)
        await assert.rejects(aborted, { key: 's/key' })
        await assert.rejects(hasty, TimedOutError)
        await assert.rejects(hasty, { key: 's/key' })
        assert.below(ended, slow.length)
        assert.has(await patient, { result: 'done' })
        await Promise.all(slow)
      })

      test('a group that takes long leaves the rest to the next, in order', async boxes => {
        const box = await boxes.open()
        const store = box.store('s', { group: { most: 4, within: 10 } })
        const order: number[] = []
        await Promise.all(
          Array.from({ length: 16 }, (_, index) =>
            store.transaction(['key'], async () => {
              order.push(index)
              await pause(6)
            }),
          ),
        )
        assert.deepEqual(
          order,
          Array.from({ length: 16 }, (_, index) => index),
        )
      })

      test('groups of several boxes go on together, each key in order', async boxes => {
        const all = await boxes.several(3)
        const task = async (box: Box, index: number): Promise<void> => {
          const store = box.store('s', { group: { most: 8, within: 20 } })
          await Promise.all(
            Array.from({ length: 30 }, (_, round) =>
              store.transaction(
                [`own ${index}`, `key ${round % 5}`],
                transaction => {
                  const key = `key ${round % 5}`
                  transaction.put(key, (transaction.get<number>(key) ?? 0) + 1)
                  const own = transaction.get<number[]>(`own ${index}`) ?? []
                  transaction.put(`own ${index}`, [...own, round])
                },
                { id: `${round}` },
              ),
            ),
          )
        }
        const delays = monitorEventLoopDelay({ resolution: 10 })
        delays.enable()
        await Promise.all(all.map(task))
        delays.disable()
        // A waiter that stands still for the window after its turn has come loses its place.
        const isInOrder = delays.max / 1e6 < CLAIM_WINDOW / 4
        const store = all[0]!.store('s')
        for (let key = 0; key < 5; key++) assert.equal((await store.get(`key ${key}`))!.value, 18)
        const rounds = Array.from({ length: 30 }, (_, round) => round)
        for (let index = 0; index < 3; index++) {
          const own = (await store.get<number[]>(`own ${index}`))!.value
          assert.deepEqual(isInOrder ? own : own.sort((one, other) => one - other), rounds)
        }
        assert.deepEqual(await locks(all[0]!), [])
      })
    })

    describe.skipIf(fixture.hasRecords)('watching', () => {
      test('a watch gives the entry now and after each change', async boxes => {
        const [one, other] = await boxes.pair()
        const watch = one.store('s').watch<number>('key')
        assert.equal((await watch.next()).value, undefined)
        for (let round = 0; round < 4; round++) {
          const next = watch.next()
          const version = await other.store('s').put('key', round)
          assert.deepEqual((await next).value, { value: round, version })
        }
        const gone = watch.next()
        await other.store('s').delete('key')
        assert.equal((await gone).value, undefined)
        await watch.return()
      })

      test('a watch sees what transactions and compare-and-set write, the last of them for certain', async boxes => {
        const [one, other] = await boxes.pair()
        const seen: unknown[] = []
        const controller = new AbortController()
        const watching = (async () => {
          for await (const entry of one.store('s').watch('key', controller.signal)) seen.push(entry?.value)
        })()
        await until('it watches', () => seen.length === 1)
        const store = other.store('s')
        for (let round = 0; round < 5; round++) {
          await store.transaction(['key', 'other'], transaction => transaction.put('key', `t${round}`))
        }
        const entry = await store.get('key')
        await store.compareAndSet('key', entry!.version, 'last')
        await until('the last is seen', () => seen.at(-1) === 'last')
        assert.equal(new Set(seen).size, seen.length)
        controller.abort()
        await watching
        assert.hasLength(getEventListeners(controller.signal, 'abort'), 0)
      })

      test('a watch does not speak of other keys, nor twice of nothing', async boxes => {
        const [one, other] = await boxes.pair()
        const watch = one.store('s').watch('key')
        await watch.next()
        const next = watch.next()
        await other.store('s').put('other', 1)
        await other.store('t').put('key', 1)
        await other.store('s').delete('key')
        await pause(50)
        assert.equal(await soFar(next), 'pending')
        await other.store('s').put('key', 2)
        assert.equal((await next).value!.value, 2)
        await watch.return()
      })

      test('a watch ends with its signal, and with its box', async boxes => {
        const box = await boxes.open()
        const controller = new AbortController()
        const watch = box.store('s').watch('key', controller.signal)
        await watch.next()
        const next = watch.next()
        controller.abort()
        assert.equal((await next).done, true)
        const aborted = box.store('s').watch('key', AbortSignal.abort())
        assert.equal((await aborted.next()).done, true)
        const other = box.store('s').watch('key')
        await other.next()
        const ending = assert.rejects(other.next(), { code: 'CLOSED' })
        await box.close()
        await ending
      })

      test('several watches of one key are told each', async boxes => {
        const [one, other] = await boxes.pair()
        const watches = [one, one, other].map(box => box.store('s').watch('key'))
        for (const watch of watches) await watch.next()
        await watches[0]!.return()
        const nexts = watches.slice(1).map(watch => watch.next())
        await one.store('s').put('key', 'changed')
        for (const next of nexts) assert.equal((await next).value!.value, 'changed')
        for (const watch of watches) await watch.return()
      })
    })
  })
}
