import { vi } from 'vitest'
import { VirtualClock } from '../../../src/clock.js'
import type { Claim } from '../../../src/engine/claim.js'
import type { LockRequest, RequestStatus } from '../../../src/engine/contract.js'
import type { EntryStore, SignStore } from '../../../src/engines/hazelcast/entry-store.js'
import { parseHazelcastUrl } from '../../../src/engines/hazelcast/hazelcast-url.js'
import type { KeyOperations } from '../../../src/engines/hazelcast/key-operations.js'

/** Of the set, in milliseconds: its box is away for much less. */
const LEASE = 60_000
/** More sets than an entry remembers. */
const ENDED = 17

const place = parseHazelcastUrl('hazelcast://127.0.0.1/dev')
const exclusive = (...keys: string[]): Claim[] => keys.map(key => ({ key, mode: 'exclusive' }))
const request = (box: string, id: string, claims: Claim[]): LockRequest => ({
  id: `${box}.${id}`,
  session: box,
  claims,
  label: undefined,
})

/** Entries in memory, whose changes happen at once, except those that are held back. */
class Entries {
  readonly #texts = new Map<string, string>()
  readonly #held: (() => void)[] = []
  /** The key whose changes of this box are held back. */
  holdsBack: { readonly box: string; readonly key: string } | undefined

  store(box: string, prefix: string): EntryStore & SignStore {
    const call = <T>(key: string, apply: () => T): Promise<T> => {
      const { holdsBack } = this
      if (holdsBack?.box !== box || holdsBack.key !== prefix + key) return Promise.resolve(apply())
      return new Promise(resolve => this.#held.push(() => resolve(apply())))
    }
    const texts = this.#texts
    return {
      get: key => Promise.resolve(texts.get(prefix + key)),
      add: (key, text) =>
        call(key, () => {
          const present = texts.get(prefix + key)
          if (present === undefined) texts.set(prefix + key, text)
          return present
        }),
      replace: (key, before, after) =>
        call(key, () => {
          if (texts.get(prefix + key) !== before) return false
          texts.set(prefix + key, after)
          return true
        }),
      remove: (key, before) =>
        call(key, () => {
          if (texts.get(prefix + key) === before) texts.delete(prefix + key)
        }),
      put: () => Promise.resolve(),
      getAll: () => Promise.resolve(new Map()),
    }
  }

  /** Makes the changes that were held back. */
  letGo(): void {
    this.holdsBack = undefined
    for (const apply of this.#held.splice(0)) apply()
  }
}

/**
 * A box takes a set. The change of its first key is late, and meanwhile another box frees the other key and locks it.
 * Returns a violated promise, or undefined.
 * @param others whether so many other sets end meanwhile that the entry of the first key no longer lists this one.
 */
export async function runLateSet(
  Operations: typeof KeyOperations,
  others: boolean,
): Promise<string | undefined> {
  let wall = 1_800_000_000_000
  const mocks = [
    vi.spyOn(Date, 'now').mockImplementation(() => ++wall),
    vi.spyOn(Math, 'random').mockReturnValue(0.5),
  ]
  const entries = new Entries()
  const [late, lateClock] = boxOf(Operations, entries, 'late')
  const [other, clock] = boxOf(Operations, entries, 'other')
  try {
    entries.holdsBack = { box: 'late', key: 'a' }
    let standing: RequestStatus | undefined
    void late
      .execute({
        type: 'enqueue',
        request: request('late', '1', exclusive('a', 'b')),
        lease: LEASE,
        wait: LEASE,
      })
      .then(
        status => (standing = status),
        () => (standing = { state: 'gone' }),
      )
    await settled()
    const single = request('other', '1', exclusive('b'))
    const terms = { request: single, lease: LEASE, wait: LEASE }
    let status = await other.execute({ type: 'enqueue', ...terms })
    if (status.state !== 'queued') return `the other key was free: ${status.state}`
    for (let tries = 0; status.state === 'queued' && tries < 20; tries++) {
      clock.advance(500)
      await settled()
      await other.execute({ type: 'alive', session: 'other', requests: [single] })
      await settled()
      status = await other.execute({ type: 'checkIn', ...terms })
    }
    if (status.state !== 'held') return `the other key was not freed: ${status.state}`
    for (let count = 0; count < (others ? ENDED : 0); count++) {
      const set = request('other', `set ${count}`, exclusive('a', 'c'))
      const held = await other.execute({ type: 'enqueue', request: set, lease: LEASE, wait: LEASE })
      if (held.state !== 'held') return `the first key was not free: ${held.state}`
      await other.execute({ type: 'release', request: set, number: held.number })
      await settled()
    }
    // Its box was away for most of that time.
    lateClock.advance(2500)
    entries.letGo()
    await settled()
    return standing?.state === 'held' ? 'both boxes hold the other key' : undefined
  } finally {
    late.end()
    other.end()
    for (const mock of mocks) mock.mockRestore()
  }
}

/**
 * A set is cancelled while its box, woken by a hint, checks in. The set has its turn then. Returns a violated promise, or
 * undefined.
 */
export async function runCancelledSet(Operations: typeof KeyOperations): Promise<string | undefined> {
  const entries = new Entries()
  const [first] = boxOf(Operations, entries, 'first')
  const [late] = boxOf(Operations, entries, 'late')
  const [other] = boxOf(Operations, entries, 'other')
  const enqueue = (box: KeyOperations, request: LockRequest, wait = LEASE): Promise<RequestStatus> =>
    box.execute({ type: 'enqueue', request, lease: LEASE, wait })
  try {
    const single = request('other', '1', exclusive('b'))
    const held = await enqueue(other, single)
    if (held.state !== 'held') return `the key was not free: ${held.state}`
    const [ahead, cancelled] = ['first', 'late'].map(box => request(box, '1', exclusive('a', 'b')))
    await enqueue(first, ahead!)
    await enqueue(late, cancelled!)
    await other.execute({ type: 'release', request: single, number: held.number })
    const next = await first.execute({ type: 'checkIn', request: ahead!, lease: LEASE, wait: LEASE })
    if (next.state !== 'held') return `the set ahead was not served: ${next.state}`
    await settled()
    entries.holdsBack = { box: 'late', key: 'room sets' }
    const asked = late.woken(cancelled!)
    await settled()
    const left = late.execute({ type: 'cancel', request: cancelled! })
    await settled()
    entries.letGo()
    await Promise.all([asked, left])
    await first.execute({ type: 'release', request: ahead!, number: next.number })
    const { state } = await enqueue(other, request('other', '2', exclusive('b')), 0)
    return state === 'held' ? undefined : `a cancelled set keeps its key: ${state}`
  } finally {
    for (const box of [first, late, other]) box.end()
  }
}

function boxOf(
  Operations: typeof KeyOperations,
  entries: Entries,
  name: string,
): [operations: KeyOperations, clock: VirtualClock] {
  const clock = new VirtualClock()
  const locks = { tryLock: () => Promise.resolve(false), unlockOnce: () => Promise.resolve() }
  const operations = new Operations({
    place,
    by: () => name,
    clock,
    keys: { store: entries.store(name, ''), locks },
    room: { store: entries.store(name, 'room '), locks },
    signs: entries.store(name, 'sign '),
    scan: {
      inUse: () => Promise.resolve([]),
      free: () => Promise.resolve([]),
      list: () => Promise.resolve([]),
    },
    repeat: work => work(),
    sessions: {
      isSweeper: () => Promise.resolve(false),
      ended: () => Promise.resolve({ sessions: [], isLeft: false }),
      forget: () => Promise.resolve(),
      leaveFree: () => Promise.resolve(),
      extendFor: () => Promise.resolve(),
      isDead: () => false,
      lookUp: () => Promise.resolve(),
      of: () => Promise.resolve(new Map()),
    },
    notify: () => undefined,
    waitsFor: () => undefined,
    unclear: () => undefined,
    isWithdrawn: () => false,
  })
  return [operations, clock]
}

/** Resolves when no box can continue without its clock. */
async function settled(): Promise<void> {
  for (let round = 0; round < 5; round++) await new Promise(resolve => setImmediate(resolve))
}
