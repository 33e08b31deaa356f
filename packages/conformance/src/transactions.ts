import { getEventListeners } from 'node:events'
import { assert } from './assert.js'
import {
  AbortedError,
  type Box,
  ConflictError,
  DeadlockError,
  InvalidArgumentError,
  type StoreOptions,
  TimedOutError,
} from 'signalbox'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { locks, nothingHeld, pause, queued, soFar, until } from './time.js'

/** Checks of the keys, the function and the options of a transaction. */
export function transactions(fixture: EngineFixture, options: StoreOptions): void {
  const test = testOn(fixture)

  test("a transaction reads, writes and deletes, and returns its function's result", async boxes => {
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

  // A put into records and the lock of a transaction go to different servers.
  const inEngine = test.runIf(!fixture.hasRecords)
  inEngine('a put that is called first comes first, also after a silence in a busy process', async boxes => {
    const box = await boxes.open()
    const store = box.store('s', options)
    for (const key of ['one', 'two', 'three']) {
      await store.put(key, 'before')
      // After a silence, a box may first find out which connections have ended. That takes it some turns.
      await pause(60)
      const put = store.put(key, 'put')
      const change = store.transaction([key], transaction => {
        assert.equal(transaction.get(key), 'put')
        transaction.put(key, 'transaction')
      })
      await slowTurns(8, 3)
      await put
      await change
      assert.equal((await store.get(key))!.value, 'transaction')
    }
  })

  test('transactions of several boxes lose no update and see no partial commit', async boxes => {
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

  test('tokens of transactions increase', async boxes => {
    const all = await boxes.several(2)
    const tokens: bigint[] = []
    for (let round = 0; round < 8; round++) {
      const store = all[round % 2]!.store('s', options)
      await store.transaction(['key'], transaction => void tokens.push(transaction.token))
    }
    for (const [index, token] of tokens.entries()) if (index > 0) assert.above(token, tokens[index - 1])
  })

  test('a transaction waits for the mutex named by store and key', async boxes => {
    const [one, other] = await boxes.pair()
    const held = await other.mutex('s/key').acquire()
    const waiting = one.store('s', options).transaction(['key'], () => 'done')
    assert.equal(await soFar(waiting), 'pending')
    await queued(other, 's/key', 1)
    await held.release()
    assert.has(await waiting, { applied: true, result: 'done' })
  })

  test('a failing function writes nothing and its error is passed on', async boxes => {
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
    await nothingHeld(box)
  })

  test('a transaction cannot use a key that it did not name', async boxes => {
    const box = await boxes.open()
    const store = box.store('s', options)
    for (const touch of ['get', 'put', 'delete'] as const) {
      const touching = store.transaction(['a'], transaction => {
        transaction.put('a', 1)
        transaction[touch]('b', 1)
      })
      await assert.rejects(touching, InvalidArgumentError)
      await assert.rejects(touching, { key: 'b' })
      await assert.rejects(touching, /b is not a key.*its keys are a/)
    }
    assert.equal(await store.get('a'), undefined)
  })

  test('a transaction can name its keys from values that it reads', async boxes => {
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

  test('the keys are named again under the lock when the value changed', async boxes => {
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
    await nothingHeld(other)
  })

  test('keys that change every time cause a conflict after the given attempts', async boxes => {
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
    await nothingHeld(box)
  })

  test('a wait or an abort ends a waiting transaction and leaves nothing', async boxes => {
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

  test('a signal that many transactions share has no listener afterwards', async boxes => {
    const box = await boxes.open()
    const { signal } = new AbortController()
    const store = box.store('s', options)
    await Promise.all(
      Array.from({ length: 9 }, () => store.transaction(['key'], () => 1, { signal, wait: 10_000 })),
    )
    assert.hasLength(getEventListeners(signal, 'abort'), 0)
  })

  test('a nested transaction that would wait for itself gets a DeadlockError', async boxes => {
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

  test('a transaction continues while its box drains, and new ones are refused', async boxes => {
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
}

/** Makes the next turns of the event loop last this long, in milliseconds, so that replies arrive in between. */
async function slowTurns(count: number, length: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) {
    await new Promise(setImmediate)
    const end = performance.now() + length
    while (performance.now() < end);
  }
}
