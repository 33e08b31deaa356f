import * as hazelcast from 'hazelcast-client'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { VirtualClock } from 'signalbox/limits'
import { MapLocks } from '../src/map-locks.js'

/** The lock of one key, as a member keeps it. */
class MemberLock {
  owner: 'ours' | 'foreign' | undefined
  count = 0
  /** Acts as another program between two calls of this client. `calls` is the number of executed calls. */
  between: (calls: number, lock: MemberLock) => void
  #calls = 0

  constructor(between: (calls: number, lock: MemberLock) => void) {
    this.between = between
  }

  isLocked = (): Promise<boolean> => this.#execute(() => this.owner !== undefined)
  tryLock = (): Promise<boolean> => this.#execute(() => this.lock('ours'))
  unlock = (): Promise<void> => this.#execute(() => this.unlockFor('ours'))

  lock(who: 'ours' | 'foreign'): boolean {
    this.owner ??= who
    if (this.owner !== who) return false
    this.count++
    return true
  }

  unlockFor(who: 'ours' | 'foreign'): void {
    if (this.owner !== who)
      throw new hazelcast.IllegalMonitorStateError('Current thread is not owner of the lock!')
    if (--this.count === 0) this.owner = undefined
  }

  async #execute<T>(call: () => T): Promise<T> {
    this.between(this.#calls++, this)
    return call()
  }
}

/** Renews a lock of this client while another program acts between the calls of the renewal. */
async function renewal(between: (calls: number, lock: MemberLock) => void) {
  const member = new MemberLock((calls, lock) => between(calls - 1, lock))
  const locks = new MapLocks(
    () => Promise.resolve(member as never),
    hazelcast,
    new VirtualClock(),
    () => 0,
  )
  await locks.tryLock('key', 0, 1000, true)
  return { isHeld: await locks.renew('key', 1000), member, locks }
}

test.each([1, 2, 3])(
  'a lock that another program had and unlocks before call %i of the renewal is lost',
  async call => {
    const { isHeld, member } = await renewal((calls, member) => {
      if (calls === 0) {
        member.unlockFor('ours')
        member.lock('foreign')
      }
      if (calls === call) member.unlockFor('foreign')
    })
    expect(isHeld).toBe(false)
    expect(member.owner).toBeUndefined()
  },
)

test.each([
  { taken: 'by no other program', isFree: true },
  { taken: 'by another program', isFree: false },
])(
  'a lock that is lost between two renewals, and taken $taken, is not acquired again',
  async ({ isFree }) => {
    const { locks, member } = await renewal(() => undefined)
    member.owner = undefined
    member.count = 0
    if (!isFree) member.lock('foreign')
    expect(await locks.renew('key', 1000)).toBe(false)
    expect(member.owner).toBe(isFree ? undefined : 'foreign')
    expect(await locks.unlock('key')).toBe(false)
  },
)

test.each([0, 1, 2])(
  'a lock that is released while it is renewed is unlocked, after %i renewals',
  async times => {
    const { locks, member } = locksOn(undefined, () => 0)
    await locks.tryLock('key', 0, 1000, true)
    for (let time = 0; time < times; time++) await locks.renew('key', 1000)
    await Promise.all([locks.renew('key', 1000), locks.unlock('key')])
    expect(member.owner).toBeUndefined()
  },
)

test('a lock is renewed by a check if a request may have been sent twice since', async () => {
  const { locks, member } = locksOn()
  await locks.tryLock('key', 0, 1000, true)
  await locks.renew('key', 1000)
  // The client repeated an unlock.
  member.unlockFor('ours')
  const owners = new Set<unknown>()
  member.between = (_, { owner }) => void owners.add(owner)
  expect(await locks.renew('key', 1000)).toBe(true)
  expect([...owners]).toEqual(['ours'])
  await locks.unlock('key')
  expect(member.owner).toBeUndefined()
})

/** Returns the locks of a client on a key that another program changes between the calls to the member. */
function locksOn(
  between: (calls: number, lock: MemberLock) => void = () => undefined,
  // By default the number of failures grows with each reading: any request may have been sent again.
  failures = (
    count => () =>
      count++
  )(0),
) {
  const member = new MemberLock(between)
  return {
    member,
    locks: new MapLocks(() => Promise.resolve(member as never), hazelcast, new VirtualClock(), failures),
  }
}

test('a key that this client locks again while it is being unlocked completely stays locked', async () => {
  let again: Promise<boolean> | undefined
  const { member, locks } = locksOn((calls, member) => {
    if (calls === 2) member.lock('foreign')
    if (calls !== 3) return
    member.unlockFor('foreign')
    queueMicrotask(() => void (again = locks.tryLock('key', 0, 1000, true)))
  })
  await locks.tryLock('key', 0, 1000, true)
  await locks.unlock('key')
  expect(await again).toBe(true)
  expect(member).toMatchObject({ owner: 'ours', count: 1 })
})

test('a lock that an earlier unlock undoes, because the client repeated the unlock, is not acquired', async () => {
  let repeated = (): void => undefined
  const { member, locks } = locksOn()
  await locks.tryLock('key', 0, 1000, true)
  const { unlock } = member
  member.unlock = async () => {
    member.unlock = unlock
    await unlock()
    await new Promise<void>(resolve => (repeated = resolve))
    return unlock()
  }
  const unlocking = locks.unlock('key')
  await Promise.resolve()
  const again = locks.tryLock('key', 0, 1000, true)
  await setImmediate()
  repeated()
  expect(await again).toBe(false)
  await unlocking
  expect(member.owner).toBeUndefined()
})

test('a key is not asked for after its unlock if no request was sent again since it was locked', async () => {
  const calls: number[] = []
  const member = new MemberLock(call => calls.push(call))
  let failures = 0
  const locks = new MapLocks(
    () => Promise.resolve(member as never),
    hazelcast,
    new VirtualClock(),
    () => failures,
  )
  for (const expected of [2, 3]) {
    calls.length = 0
    await locks.tryLock('key', 0, 1000, true)
    if (expected === 3) failures++
    expect(await locks.unlock('key')).toBe(true)
    expect(calls).toHaveLength(expected)
  }
})
