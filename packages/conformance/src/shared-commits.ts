import { describe } from './checks.js'
import { assert } from './assert.js'
import { AbortedError, type Box, TimedOutError } from 'signalbox'
import { testOn } from './boxes.js'
import { CLAIM_WINDOW } from 'signalbox/engine'
import type { EngineFixture } from './fixture.js'
import { locks, pause, watchStandstills } from './time.js'

/** Transactions of a group, which share a commit. */
export function sharedCommits(fixture: EngineFixture): void {
  const test = testOn(fixture)

  describe('transactions that share a commit', () => {
    const group = { maxSize: 4, maxTime: 50 }

    test('they run in call order, and each sees the writes of the ones before', async boxes => {
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

    test('many transactions share a commit, never more than the group allows', async boxes => {
      const [box, engine] = await boxes.withFaults()
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

    test('a failed transaction leaves no trace in the others of its commit', async boxes => {
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

    test('a conflict fails one transaction, and the others of its group commit', async boxes => {
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

    test('a transaction whose ID is used several times in a group happens once', async boxes => {
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

    test('an ID whose first attempt fails is tried by the next transaction of the group', async boxes => {
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

    test('a wait counts from the call, also behind slow groups', async boxes => {
      const box = await boxes.open()
      const store = box.store('s', { group: { maxSize: 2, maxTime: 1 } })
      let ended = 0
      const slow = Array.from({ length: 12 }, () =>
        store.transaction(['key'], () => pause(60)).finally(() => ended++),
      )
      const hasty = store.transaction(['key'], () => 'in time', { wait: 100 })
      // On a busy machine it may reject before it is awaited.
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

    test('a slow group leaves the rest to the next one, in order', async boxes => {
      const box = await boxes.open()
      const store = box.store('s', { group: { maxSize: 4, maxTime: 10 } })
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

    test('groups of several boxes work at the same time, each key in order', async boxes => {
      const all = await boxes.several(3)
      const task = async (box: Box, index: number): Promise<void> => {
        const store = box.store('s', { group: { maxSize: 8, maxTime: 20 } })
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
      const longestStandstill = watchStandstills(await boxes.open())
      await Promise.all(all.map(task))
      // A waiter that stands still for the claim window loses its turn.
      const isInOrder = (await longestStandstill()) < CLAIM_WINDOW / 2
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
}
