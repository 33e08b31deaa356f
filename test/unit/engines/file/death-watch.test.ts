import { beforeEach, describe, expect, test } from 'vitest'
import type { LockRequest, RequestStatus } from '../../../../src/engine/contract.js'
import { DeathWatch, type Sessions } from '../../../../src/engines/file/death-watch.js'
import type { Mailbox } from '../../../../src/engines/file/mailbox.js'

/** The calls so far, in order. */
let calls: string[]
/** The functions that report the death of the process at an address, by address. */
let deaths: Map<string, () => void>
/** The sessions of other threads and their addresses. */
let others: Map<string, string>
let deadAddresses: Set<string>
let watch: DeathWatch

function mailbox(): Mailbox {
  const fake: Pick<Mailbox, 'address' | 'watch' | 'isDead' | 'remove'> = {
    address: 'own.box',
    watch: (address, dead) => {
      calls.push(`watch ${address}`)
      deaths.set(address, dead)
      return () => {
        calls.push(`look away from ${address}`)
        deaths.delete(address)
      }
    },
    isDead: async address => deadAddresses.has(address),
    remove: address => void calls.push(`remove ${address}`),
  }
  return fake as Mailbox
}

const sessions: Sessions = {
  isLocal: session => session.startsWith('own'),
  address: async session => {
    calls.push(`address of ${session}`)
    return others.get(session)
  },
  at: async address => [...others].filter(([, at]) => at === address).map(([session]) => session),
  remove: async session => {
    calls.push(`free ${session}`)
    others.delete(session)
  },
  wake: (session, id) => void calls.push(`wake ${id} of ${session}`),
}

beforeEach(() => {
  calls = []
  deaths = new Map()
  others = new Map()
  deadAddresses = new Set()
  watch = new DeathWatch(mailbox(), sessions)
})

/** Queues a request of a box of this thread behind these sessions. */
function queuedBehind(id: string, sessionsAhead: readonly string[], session = `own ${id}`): LockRequest {
  const request: LockRequest = { id, session, claims: [], label: undefined }
  const status: RequestStatus = { state: 'queued', id, place: 1, checkInAfter: 1000, sessionsAhead }
  watch.note({ type: 'enqueue', request, lease: 1000, wait: 1000 }, status)
  return request
}

const settled = () => new Promise(setImmediate)

/** Returns the calls since it was last called. */
async function called(): Promise<string[]> {
  await settled()
  return calls.splice(0)
}

describe('the watch of a thread over others', () => {
  test('looks an address up once, and watches a thread once, however many requests wait behind its sessions', async () => {
    others = new Map([
      ['a1', 'a.box'],
      ['a2', 'a.box'],
    ])
    for (let index = 0; index < 100; index++) queuedBehind(`r${index}`, [`a${1 + (index % 2)}`])
    expect(await called()).toEqual(['address of a1', 'address of a2', 'watch a.box'])
    queuedBehind('later', ['a1', 'a2'])
    expect(await called()).toEqual([])
  })

  test('frees each session of a dead thread once, and wakes all requests behind them', async () => {
    for (let index = 0; index < 50; index++) others.set(`a${index}`, 'a.box')
    for (let index = 0; index < 50; index++) queuedBehind(`r${index}`, [`a${index}`])
    queuedBehind('other', ['own x'])
    await called()
    deadAddresses.add('a.box')
    deaths.get('a.box')!()
    await Promise.all([watch.visit(['own.box', 'a.box']), watch.visit(['a.box'])])
    const all = await called()
    expect(all.filter(call => call.startsWith('free')).sort()).toEqual(
      Array.from({ length: 50 }, (_, index) => `free a${index}`).sort(),
    )
    expect(all.filter(call => call.startsWith('wake'))).toHaveLength(50)
    expect(all.filter(call => call === 'remove a.box')).toHaveLength(1)
    expect(all.at(-1)).toBe('remove a.box')
  })

  test('neither looks up nor watches boxes of its own thread', async () => {
    queuedBehind('r', ['own a', 'own b'])
    expect(await called()).toEqual([])
  })

  test('frees a session that is not there any more, and wakes the request behind it', async () => {
    queuedBehind('r', ['gone'])
    expect(await called()).toEqual(['address of gone', 'free gone', 'wake r of own r'])
  })

  test('keeps the socket of a dead thread while a session of it could not be freed, and tries it again', async () => {
    others.set('a', 'a.box').set('b', 'a.box')
    deadAddresses.add('a.box')
    const remove = sessions.remove
    try {
      sessions.remove = session => (session === 'b' ? Promise.reject(new Error('full')) : remove(session))
      queuedBehind('r', ['b'])
      await called()
      deaths.get('a.box')!()
      expect(await called()).toEqual(['free a', 'wake r of own r'])
    } finally {
      sessions.remove = remove
    }
    await watch.visit(['a.box'])
    expect(await called()).toEqual(['free b', 'wake r of own r', 'remove a.box'])
  })

  test('keeps few watches once nothing waits, and those that are needed while something does', async () => {
    for (let index = 0; index < 30; index++) others.set(`s${index}`, `${index}.box`)
    const requests = [...others.keys()].map(session => queuedBehind(`r ${session}`, [session]))
    await settled()
    expect(deaths.size).toBe(30)
    for (const request of requests.slice(1)) watch.note({ type: 'cancel', request }, undefined)
    await settled()
    others.set('new', 'new.box')
    for (let index = 30; index < 100; index++) {
      others.set(`s${index}`, `${index}.box`)
      const request = queuedBehind(`r ${index}`, [`s${index}`])
      await settled()
      watch.note({ type: 'cancel', request }, undefined)
    }
    expect(deaths.has('0.box')).toBe(true)
    watch.note({ type: 'cancel', request: requests[0]! }, undefined)
    expect(deaths.size).toBeLessThanOrEqual(8)
  })

  test('wakes no request of a box that has left', async () => {
    others.set('a', 'a.box')
    queuedBehind('r1', ['a'], 'own 1')
    queuedBehind('r2', ['a'], 'own 2')
    await called()
    watch.left('own 1')
    deaths.get('a.box')!()
    expect(await called()).toEqual(['free a', 'wake r2 of own 2', 'remove a.box'])
  })

  test('frees nothing once it was stopped', async () => {
    others.set('a', 'a.box')
    queuedBehind('r', ['a'])
    await called()
    const die = deaths.get('a.box')!
    watch.stop()
    die()
    deadAddresses.add('a.box')
    await watch.visit(['a.box'])
    expect(await called()).toEqual(['look away from a.box'])
  })
})
