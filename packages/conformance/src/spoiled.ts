import { DamagedValueError, type Store } from 'signalbox'
import { testOn } from './boxes.js'
import { assert, rejection } from './assert.js'
import { describe } from './checks.js'
import type { EngineFixture } from './fixture.js'
import { keysOf, listed } from './listing.js'

/**
 * P10, P13: an unreadable value affects no other value, the error names its key, and callers can overwrite it. If the
 * value may be of another layout, they have to name its version.
 */
export function spoiled(fixture: EngineFixture): void {
  describe('one spoiled value', () => {
    const test = testOn(fixture)

    test('is named, spoils no other, and can be overwritten and deleted', async boxes => {
      const { place } = boxes
      if (!place.spoil) return
      const [one, other] = await boxes.pair()
      const store = one.store('s')
      for (const repair of [replace, remove]) {
        await Promise.all(['all', 'bad', 'good'].map(key => store.put(key, 'old')))
        await place.spoil('s', 'bad')
        const [bad, good] = await Promise.allSettled([store.get('bad'), store.get('good')])
        assert.equal(good.status === 'fulfilled' && good.value?.value, 'old')
        const reason: unknown = bad.status === 'rejected' ? bad.reason : undefined
        damaged(reason)
        const both = await Promise.allSettled([
          store.transaction(['bad'], transaction => transaction.get('bad')),
          store.transaction(['good'], transaction => transaction.put('good', 'newer')),
        ])
        assert.deepEqual(
          both.map(({ status }) => status),
          ['rejected', 'fulfilled'],
        )
        if (both[0].status === 'rejected') damaged(both[0].reason)
        assert.equal((await other.store('s').get('good'))?.value, 'newer')
        if (!fixture.hasRecords) {
          const seen: unknown[] = []
          const going = (async () => {
            for await (const { key } of other.store('s').list()) seen.push(key)
          })()
          await assert.rejects(going, DamagedValueError)
          await assert.rejects(going, { code: 'UNAVAILABLE', key: 's/bad' })
          assert.deepEqual(seen, ['all'])
          assert.deepEqual(keysOf(await listed(other.store('s'), { after: 'bad' })), ['good'])
        }
        await repair(other.store('s'))
        await store.put('bad', 'repaired')
        assert.equal((await other.store('s').get('bad'))?.value, 'repaired')
      }
    })

    test('can be replaced by its version, if its error reports one', async boxes => {
      const { place } = boxes
      if (!place.spoil) return
      const [one, other] = await boxes.pair()
      const store = one.store('s')
      await store.put('bad', 'old')
      await place.spoil('s', 'bad')
      const error = await rejection(store.get('bad'))
      const { version } = damaged(error)
      if (version === undefined) return
      assert.equal(await other.store('s').compareAndSet('bad', version + 1, 'of nobody'), undefined)
      assert.above(await other.store('s').compareAndSet('bad', version, 'repaired'), version)
      assert.equal(await store.compareAndSet('bad', version, 'too late'), undefined)
      assert.equal((await store.get('bad'))?.value, 'repaired')
    })

    test('in place of the term of an election is named, and the next leader replaces it', async boxes => {
      const { place } = boxes
      if (!place.spoil || fixture.hasRecords) return
      const [one, other] = await boxes.pair()
      const term = await one.election('e').campaign()
      await place.spoil('signalbox-elections', 'e')
      damaged(await rejection(other.election('e').leader()))
      await term.release()
      const next = await other.election('e').campaign()
      assert.equal((await one.election('e').leader())?.token, next.token)
      await next.release()
      assert.equal(await one.election('e').leader(), undefined)
    })
  })
}

function damaged(error: unknown): DamagedValueError {
  assert.isA(error, DamagedValueError)
  assert.has(error, { code: 'UNAVAILABLE', name: 'DamagedValueError' })
  assert.match((error as Error).message, /bad|elections/)
  return error as DamagedValueError
}

async function replace(store: Store): Promise<void> {
  try {
    await store.put('bad', 'new')
  } catch (error) {
    const { version = 0 } = damaged(error)
    assert.equal(await store.compareAndSet('bad', version + 1, 'of nobody'), undefined)
    assert.above(await store.compareAndSet('bad', version, 'new'), version)
  }
}

async function remove(store: Store): Promise<void> {
  try {
    await store.delete('bad')
  } catch (error) {
    const { version = 0 } = damaged(error)
    assert.equal(await store.delete('bad', version + 1), false)
    assert.equal(await store.delete('bad', version), true)
  }
}
