import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/clock.js'
import type { KeyLock, KeyLocks } from '../../../../src/engines/hazelcast/key-locks.js'
import { MemberLocks } from '../../../../src/engines/hazelcast/member-locks.js'

const LEASE = 1000

/** Locks that nobody else wants, and whose unlocks can be held up. */
class FreeLocks implements KeyLocks {
  readonly attempt = 25
  readonly longestWait = 1000
  readonly longestTurns = 5
  readonly locked = new Set<string>()
  /** What an unlock waits for. */
  unlocking: Promise<void> = Promise.resolve()

  reached = (): Promise<void> => Promise.resolve()
  certainLife = (lease: number): number => lease

  async tryLock(key: string): Promise<KeyLock> {
    this.locked.add(key)
    return {
      renew: () => Promise.resolve(true),
      unlock: async () => {
        await this.unlocking
        return this.locked.delete(key)
      },
    }
  }
}

test('a renewal on its way while others are let in takes no lock for lost', async () => {
  const clock = new VirtualClock()
  const keyLocks = new FreeLocks()
  const locks = new MemberLocks(keyLocks, clock)
  expect(await locks.tryEnter('grant', ['a', 'b'], LEASE)).toBe(true)
  clock.advance(keyLocks.longestTurns)
  let goOn = (): void => undefined
  keyLocks.unlocking = new Promise(resolve => (goOn = resolve))
  const handingOn = locks.handOn('grant', LEASE)
  expect(await locks.renew('grant', LEASE)).toBe(true)
  goOn()
  expect(await handingOn).toBe('held')
  expect(await locks.renew('grant', LEASE)).toBe(true)
  expect([...keyLocks.locked].sort()).toEqual(['a', 'b'])
  await locks.leave('grant')
  expect(await locks.renew('grant', LEASE)).toBe(true)
  expect(keyLocks.locked).toEqual(new Set())
})

test('what is not renewed is given back when its lease is over, and not before', async () => {
  const clock = new VirtualClock()
  const keyLocks = new FreeLocks()
  const locks = new MemberLocks(keyLocks, clock)
  expect(await locks.tryEnter('grant', ['a'], LEASE)).toBe(true)
  clock.advance(LEASE - 1)
  await new Promise(setImmediate)
  expect(keyLocks.locked).toEqual(new Set(['a']))
  clock.advance(5)
  await new Promise(setImmediate)
  expect(keyLocks.locked).toEqual(new Set())
})
