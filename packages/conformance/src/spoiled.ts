import { UnavailableError } from 'signalbox'
import { testOn } from './boxes.js'
import { assert } from './assert.js'
import { describe } from './checks.js'
import { keepsValues, type EngineFixture } from './fixture.js'
import { keysOf, listed } from './listing.js'

/** P10, P13: a value that cannot be read spoils nothing else, is named, and can be overwritten. */
export function spoiled(fixture: EngineFixture): void {
  if (!keepsValues(fixture)) return
  describe('one spoiled value', () => {
    const test = testOn(fixture)

    test('is named, spoils no other, and can be overwritten and deleted', async boxes => {
      const { place } = boxes
      if (!place.spoil) return
      const [one, other] = await boxes.pair()
      const store = one.store('s')
      for (const repair of [() => store.put('bad', 'new'), () => other.store('s').delete('bad')]) {
        await Promise.all(['all', 'bad', 'good'].map(key => store.put(key, 'old')))
        await place.spoil('s', 'bad')
        const [bad, good] = await Promise.allSettled([store.get('bad'), store.get('good')])
        assert.equal(good.status === 'fulfilled' && good.value?.value, 'old')
        const reason: unknown = bad.status === 'rejected' ? bad.reason : undefined
        assert.isA(reason, UnavailableError)
        assert.match((reason as Error).message, 'bad')
        const both = await Promise.allSettled([
          store.transaction(['bad'], transaction => transaction.get('bad')),
          store.transaction(['good'], transaction => transaction.put('good', 'newer')),
        ])
        assert.deepEqual(
          both.map(({ status }) => status),
          ['rejected', 'fulfilled'],
        )
        assert.equal((await other.store('s').get('good'))?.value, 'newer')
        if (!fixture.hasRecords) {
          const seen: unknown[] = []
          const going = (async () => {
            for await (const { key } of other.store('s').list()) seen.push(key)
          })()
          await assert.rejects(going, { code: 'UNAVAILABLE', key: 's/bad' })
          assert.deepEqual(seen, ['all'])
          assert.deepEqual(keysOf(await listed(other.store('s'), { after: 'bad' })), ['good'])
        }
        await repair()
        await store.put('bad', 'repaired')
        assert.equal((await other.store('s').get('bad'))?.value, 'repaired')
      }
    })
  })
}
