import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { expect, onTestFinished, test } from 'vitest'
import { channels, type BoxEvent } from '../../../src/base/diagnostics.js'
import { BusyError, open, TimedOutError } from '../../../src/index.js'

/** Collects the messages of channels from now on, in order, each with the name of its channel. */
function heard(...names: (keyof typeof channels)[]): [string, BoxEvent][] {
  const events: [string, BoxEvent][] = []
  for (const name of names) {
    const listen = (message: unknown): void => void events.push([name, message as BoxEvent])
    subscribe(channels[name].name, listen)
    onTestFinished(() => void unsubscribe(channels[name].name, listen))
  }
  return events
}

const milliseconds = expect.any(Number) as number

test('a limiter publishes permits, refusals and pauses before its caller continues', async () => {
  await using box = await open('memory:')
  const events = heard('permitted', 'refused', 'paused')
  const limiter = box.limiter('api', { limit: 1, per: '1m' })
  const about = { engine: 'memory:', session: box.session, limiter: 'api', key: undefined, n: 1 }
  await limiter.acquire()
  expect(events.splice(0)).toEqual([['permitted', { ...about, waited: milliseconds }]])
  await limiter.key('one').run(() => {
    expect(events.splice(0)).toEqual([['permitted', { ...about, key: 'one', waited: milliseconds }]])
  })
  expect(await limiter.tryAcquire()).toBeUndefined()
  expect(events.splice(0)).toEqual([
    ['refused', { ...about, waited: milliseconds, error: expect.any(BusyError) as Error }],
  ])
  const refusal = await limiter.acquire(1, { wait: 10 }).catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(TimedOutError)
  expect(events.splice(0)).toEqual([['refused', { ...about, waited: milliseconds, error: refusal }]])
  const { n: _n, ...whole } = about
  const until = new Date(Date.now() + 60_000)
  await limiter.pauseUntil(until)
  expect(events.splice(0)).toEqual([['paused', { ...whole, until: until.getTime() }]])
})

test('a pause that is over already is not published, because it changes nothing', async () => {
  await using box = await open('memory:')
  const events = heard('paused')
  const limiter = box.limiter('api', { limit: 1, per: '1m' })
  await limiter.pauseUntil(Date.now() - 1)
  await limiter.pauseUntil(0)
  expect(events).toEqual([])
})

test("a store publishes the outcome of each transaction and each write, with the caller's keys", async () => {
  await using box = await open('memory:')
  const events = heard('transaction', 'write')
  const store = box.store('bank')
  const about = { engine: 'memory:', session: box.session, store: 'bank', took: milliseconds }
  const add = () =>
    store.transaction(['b', 'a'], transaction => transaction.put('a', transaction.token > 0n), { id: 'one' })
  const done = await add()
  const token = done.applied ? done.token : undefined
  await add()
  expect(events.splice(0)).toEqual([
    ['transaction', { ...about, keys: ['b', 'a'], outcome: 'applied', attempts: 1, token }],
    ['transaction', { ...about, keys: ['b', 'a'], outcome: 'repeated', attempts: 1 }],
  ])

  // The value that names the key has changed, so the transaction names its keys again.
  await store.put('way', 'a')
  let moved = false
  await store.transaction(
    async read => {
      const found = (await read<string>('way'))!
      if (!moved) await store.put('way', 'b')
      moved = true
      return ['way', found]
    },
    () => undefined,
  )
  const failure = await store
    .transaction(['a'], () => Promise.reject(new Error('no')))
    .catch((error: unknown) => error)
  expect(events.splice(0).slice(2)).toEqual([
    [
      'transaction',
      { ...about, keys: ['way', 'b'], outcome: 'applied', attempts: 2, token: expect.any(BigInt) as bigint },
    ],
    ['transaction', { ...about, keys: ['a'], outcome: 'failed', attempts: 1, error: failure }],
  ])

  const version = await store.put('c', 1)
  expect(await store.compareAndSet('c', version + 1, 2)).toBeUndefined()
  expect(await store.delete('c', version)).toBe(true)
  expect(events.splice(0)).toEqual([
    ['write', { ...about, keys: ['c'], verb: 'put', outcome: 'applied' }],
    ['write', { ...about, keys: ['c'], verb: 'compareAndSet', outcome: 'conflict' }],
    ['write', { ...about, keys: ['c'], verb: 'delete', outcome: 'applied' }],
  ])
})

test('a failed call is published with the error that its caller gets', async () => {
  const box = await open('memory:')
  const events = heard('transaction', 'write', 'refused')
  const store = box.store('bank')
  const limiter = box.limiter('api', { limit: 1, per: '1m' })
  await box.close()
  const errors = await Promise.all(
    [store.put('a', 1), store.transaction(['a'], () => 1)].map(failing =>
      failing.catch((error: unknown) => error),
    ),
  )
  const refused = await limiter.acquire().catch((error: unknown) => error)
  await limiter.close()
  const refusedLater = await limiter.acquire().catch((error: unknown) => error)
  expect(events.map(([name, event]) => [name, (event as BoxEvent & { error: unknown }).error])).toEqual([
    ['write', errors[0]],
    ['transaction', errors[1]],
    ['refused', refused],
    ['refused', refusedLater],
  ])
})
