import * as hazelcast from 'hazelcast-client'
import { expect, test } from 'vitest'
import { VirtualClock } from 'signalbox/limits'
import { MapLocks } from '../src/map-locks.js'
import { YIELD_AFTER, MemberLocks } from '../src/member-locks.js'

const LEASE = 1000

/** A map whose unlocks can be delayed. Another program has locked the keys in `taken` only. */
class FreeMap {
  /** Unlocks wait for this promise. */
  unlocking: Promise<void> = Promise.resolve()
  /** Keys that another program has locked. */
  readonly taken = new Set<string>()
  /** Number of the locking call that never gets an answer, counted from 1; 0: none. */
  unanswered = 0
  /** Number of locking calls. */
  attempts = 0
  /** Number of locks of each key. */
  readonly #counts = new Map<string, number>()

  get locked(): Set<string> {
    return new Set(this.#counts.keys())
  }

  isLocked = (key: string): Promise<boolean> => Promise.resolve(this.#counts.has(key))

  async tryLock(key: string): Promise<boolean> {
    if (++this.attempts === this.unanswered) return new Promise(() => undefined)
    if (this.taken.has(key)) return false
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1)
    return true
  }

  async unlock(key: string): Promise<void> {
    await this.unlocking
    const count = this.#counts.get(key)
    if (count === undefined)
      throw new hazelcast.IllegalMonitorStateError('Current thread is not owner of the lock!')
    if (count === 1) this.#counts.delete(key)
    else this.#counts.set(key, count - 1)
  }
}

function locksOn(map: FreeMap, clock: VirtualClock): MemberLocks {
  return new MemberLocks(
    new MapLocks(
      () => Promise.resolve(map as never),
      hazelcast,
      clock,
      () => 0,
    ),
    clock,
  )
}

test('a renewal while other programs get a chance reports no lock as lost', async () => {
  const clock = new VirtualClock()
  const map = new FreeMap()
  const locks = locksOn(map, clock)
  expect(await locks.tryLock('grant', ['a', 'b'], LEASE)).toBe(true)
  clock.advance(YIELD_AFTER)
  let goOn = (): void => undefined
  map.unlocking = new Promise(resolve => (goOn = resolve))
  const handingOn = locks.reuse('grant', LEASE)
  expect(await locks.renew('grant', LEASE)).toBe(true)
  goOn()
  expect(await handingOn).toBe('held')
  expect(await locks.renew('grant', LEASE)).toBe(true)
  expect([...map.locked].sort()).toEqual(['a', 'b'])
  await locks.unlock('grant')
  expect(await locks.renew('grant', LEASE)).toBe(true)
  expect(map.locked).toEqual(new Set())
})

test('a lock that is not renewed is unlocked at the end of its lease, and not before', async () => {
  const clock = new VirtualClock()
  const map = new FreeMap()
  const locks = locksOn(map, clock)
  expect(await locks.tryLock('grant', ['a'], LEASE)).toBe(true)
  clock.advance(LEASE - 1)
  await new Promise(setImmediate)
  expect(map.locked).toEqual(new Set(['a']))
  clock.advance(5)
  await new Promise(setImmediate)
  expect(map.locked).toEqual(new Set())
})

test('a wait for another program renews each lock when it gets it, and at the end', async () => {
  const map = new FreeMap()
  const locks = locksOn(map, new VirtualClock())
  const keys = Array.from({ length: 20 }, (_, index) => `key ${index}`)
  map.taken.add('key 0')
  expect(await locks.tryLock('grant', keys, LEASE)).toBe(false)
  map.taken.clear()
  map.attempts = 0
  await new Promise<void>(resolve => locks.wait('grant', resolve))
  expect(map.locked).toEqual(new Set(keys))
  expect(map.attempts).toBe(4 * keys.length - 1)
  await locks.unlock('grant')
  expect(map.locked).toEqual(new Set())
})

test('a second unlock of a grant waits for the first one', async () => {
  const map = new FreeMap()
  const locks = locksOn(map, new VirtualClock())
  await locks.tryLock('grant', ['a'], LEASE)
  let goOn = (): void => undefined
  map.unlocking = new Promise(resolve => (goOn = resolve))
  const done: string[] = []
  const both = ['first', 'second'].map(name => locks.unlock('grant').then(() => done.push(name)))
  await new Promise(setImmediate)
  expect(done).toEqual([])
  goOn()
  await Promise.all(both)
  expect(done).toEqual(['first', 'second'])
})

test('an attempt that fails late leaves the locks of a later attempt for the same request', async () => {
  const clock = new VirtualClock()
  const map = new FreeMap()
  const locks = locksOn(map, clock)
  map.unanswered = 1
  const early = locks.tryLock('grant', ['a'], 10 * LEASE)
  await locks.unlock('grant')
  expect(await locks.tryLock('grant', ['a'], 10 * LEASE)).toBe(true)
  clock.advance(4000)
  await expect(early).rejects.toThrow('no answer')
  expect(map.locked).toEqual(new Set(['a']))
})
