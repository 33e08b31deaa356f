import { getEventListeners } from 'node:events'
import { WATCH_READ_INTERVAL } from 'signalbox/engine'
import { describe } from './checks.js'
import { assert } from './assert.js'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { pause, soFar, timed, until } from './time.js'

/** Watches of a key. */
export function watching(fixture: EngineFixture): void {
  const test = testOn(fixture)

  describe('watching', () => {
    test('a watch yields the current entry and one after each change', async boxes => {
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

    test('a watch yields a change that comes right after the first entry', async boxes => {
      const [one, other] = await boxes.pair()
      const took = await timed(() =>
        Promise.all(
          Array.from({ length: 20 }, async (_, index) => {
            const watch = one.store('s').watch(`key ${index}`)
            await watch.next()
            const next = watch.next()
            await other.store('s').put(`key ${index}`, 'changed')
            assert.equal((await next).value?.value, 'changed')
            await watch.return()
          }),
        ),
      )
      // Otherwise a read finds the change, some seconds later.
      assert.below(took, WATCH_READ_INTERVAL / 2)
    })

    test('a watch sees writes of transactions and compare-and-set, and always the last one', async boxes => {
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

    test('a watch yields nothing for other keys, nor for deleting an absent key', async boxes => {
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

    test('each of several watches of a key yields the change', async boxes => {
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
}
