import { expect, test } from 'vitest'
import { GrantLocks } from '../src/grant-locks.js'
import { parseHazelcastUrl } from '../src/hazelcast-url.js'
import type { MemberLocks } from '../src/member-locks.js'
import { OwnRequests } from '../src/own-requests.js'
import { lockRequest } from '../../../test/support/lock-request.js'

/** Returns grants over these locks on the members. All their operations have the same outcome. */
function grantLocks(locks: Partial<MemberLocks>, decide: () => Promise<unknown>): GrantLocks {
  return new GrantLocks(
    parseHazelcastUrl('hazelcast://127.0.0.1:5701/signalbox'),
    new OwnRequests(),
    () => true,
    () => undefined,
    () => true,
    locks as MemberLocks,
    decide as never,
    () => undefined,
  )
}

test('a box with thousands of grants renews the locks of a few of them at a time', async () => {
  let running = 0
  let most = 0
  const renew = async (): Promise<boolean> => {
    most = Math.max(most, ++running)
    await Promise.resolve()
    running--
    return true
  }
  const locks = grantLocks({ renew }, () => Promise.resolve(true))
  const renewals = Array.from({ length: 1000 }, (_, number) =>
    locks.execute({ type: 'renew', request: lockRequest(`amy.${number}`), number, lease: 1000 }),
  )
  expect(await Promise.all(renewals)).not.toContain(false)
  expect(most).toBe(64)
})

test('a grant that is yielded does not wait until its key is unlocked on the members', async () => {
  const queued = { state: 'queued', id: 'amy.2', place: 1, checkInAfter: 1000, sessionsAhead: [] } as const
  let isUnlocked = false
  const locks = grantLocks({ unlock: () => new Promise<void>(() => (isUnlocked = true)) }, () =>
    Promise.resolve(queued),
  )
  const [request, next] = [lockRequest('amy.1'), lockRequest('amy.2')]
  const terms = { number: 1, lease: 1000, wait: Infinity }
  expect(await locks.execute({ type: 'extendOrYield', request, next, ...terms })).toBe(queued)
  expect(isUnlocked).toBe(true)
})

/** Returns locks on the members that record their calls. */
function recorded(): { calls: string[]; members: Partial<MemberLocks> } {
  const calls: string[] = []
  const members = {
    tryLock: () => Promise.resolve(calls.push('lock') > 0),
    unlock: () => Promise.resolve(void calls.push('unlock')),
  }
  return { calls, members }
}

test('the locks of a request that is blocked are released before it has its place, and taken again for its grant', async () => {
  const { calls, members } = recorded()
  const request = { ...lockRequest('amy.1'), claims: [{ key: 'a', mode: 'exclusive' as const }] }
  const locks = grantLocks(members, () => {
    expect(calls).toEqual([])
    for (let times = 0; times < 2; times++) locks.granting(request, 1000)
    locks.blocked('another')
    expect(calls).toEqual(['lock'])
    for (let times = 0; times < 2; times++) locks.blocked(request.id)
    expect(calls).toEqual(['lock', 'unlock'])
    return Promise.resolve({ state: 'held', id: request.id, number: 1 })
  })
  const enqueue = { type: 'enqueue', request, lease: 1000, wait: Infinity } as const
  expect(await locks.execute(enqueue)).toMatchObject({ state: 'held' })
  expect(calls).toEqual(['lock', 'unlock', 'lock'])
  locks.blocked(request.id)
  expect(calls).toHaveLength(3)
})

test.each(['release', 'cancel'] as const)(
  'a %s unlocks its key while the entry is changed, or after that has failed',
  async type => {
    const { calls, members } = recorded()
    const operation = { type, request: lockRequest('amy.1'), number: 1 }
    const locks = grantLocks(members, () => {
      expect(calls).toEqual([])
      locks.releasing('amy.1')
      expect(calls).toEqual(['unlock'])
      return Promise.resolve(true)
    })
    expect(await locks.execute(operation)).toBe(true)
    calls.length = 0
    const failing = grantLocks(members, () => Promise.reject(new Error('no member')))
    await expect(failing.execute(operation)).rejects.toThrow('no member')
    expect(calls).toEqual(['unlock'])
    // The error comes without a reply of the members.
    const silent = grantLocks({ unlock: () => new Promise(() => undefined) }, () =>
      Promise.reject(new Error('no member')),
    )
    await expect(silent.execute(operation)).rejects.toThrow('no member')
  },
)
