import { vi } from 'vitest'
import type { LockRequest, RequestStatus } from '../../../src/engine/contract.js'
import type { KeyOperations } from '../../../packages/hazelcast/src/key-operations.js'
import { exclusive, PromptEntries, requestOf, settled } from './prompt-entries.js'

/** Lease of the set, in milliseconds. Its box is away for a much shorter time. */
const LEASE = 60_000
/** More sets than an entry remembers. */
const ENDED = 17

/**
 * Lets a box take a set. The change of its first key is late, and meanwhile another box frees the other key and locks
 * it. Returns a message about a violated promise, or undefined.
 * @param others whether enough other sets end meanwhile that the entry of the first key no longer lists this set
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
  const entries = new PromptEntries()
  const { operations: late, clock: lateClock } = entries.box(Operations, 'late')
  const { operations: other, clock } = entries.box(Operations, 'other')
  try {
    entries.holdsBack = { box: 'late', key: 'a' }
    let standing: RequestStatus | undefined
    void late
      .execute({
        type: 'enqueue',
        request: requestOf('late', '1', exclusive('a', 'b')),
        lease: LEASE,
        wait: LEASE,
      })
      .then(
        status => (standing = status),
        () => (standing = { state: 'gone' }),
      )
    await settled()
    const single = requestOf('other', '1', exclusive('b'))
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
      const set = requestOf('other', `set ${count}`, exclusive('a', 'c'))
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
 * Cancels a set while its box checks in after a hint. The set then has its turn. Returns a message about a violated
 * promise, or undefined.
 */
export async function runCancelledSet(Operations: typeof KeyOperations): Promise<string | undefined> {
  const entries = new PromptEntries()
  const { operations: first } = entries.box(Operations, 'first')
  const { operations: late } = entries.box(Operations, 'late')
  const { operations: other } = entries.box(Operations, 'other')
  const enqueue = (box: KeyOperations, request: LockRequest, wait = LEASE): Promise<RequestStatus> =>
    box.execute({ type: 'enqueue', request, lease: LEASE, wait })
  try {
    const single = requestOf('other', '1', exclusive('b'))
    const held = await enqueue(other, single)
    if (held.state !== 'held') return `the key was not free: ${held.state}`
    const [ahead, cancelled] = ['first', 'late'].map(box => requestOf(box, '1', exclusive('a', 'b')))
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
    const { state } = await enqueue(other, requestOf('other', '2', exclusive('b')), 0)
    return state === 'held' ? undefined : `a cancelled set keeps its key: ${state}`
  } finally {
    for (const box of [first, late, other]) box.end()
  }
}

/**
 * Lets a set leave a key for which another set waits in the waiting room. The box of that set is slow, and a box that
 * has just opened wants the key. Returns a message about a violated promise, or undefined.
 */
export async function runWaitingSet(Operations: typeof KeyOperations): Promise<string | undefined> {
  const entries = new PromptEntries()
  const names = ['first', 'second', 'third', 'new'] as const
  const boxes = names.map(name => entries.box(Operations, name).operations)
  const [first, second, third, fresh] = boxes as [KeyOperations, KeyOperations, KeyOperations, KeyOperations]
  const enqueue = (box: KeyOperations, request: LockRequest, wait = LEASE): Promise<RequestStatus> =>
    box.execute({ type: 'enqueue', request, lease: LEASE, wait })
  const checkIn = (box: KeyOperations, request: LockRequest): Promise<RequestStatus> =>
    box.execute({ type: 'checkIn', request, lease: LEASE, wait: LEASE })
  const release = async (box: KeyOperations, request: LockRequest, status: RequestStatus): Promise<void> => {
    if (status.state !== 'held') throw new Error(`${request.id} is ${status.state}`)
    await box.execute({ type: 'release', request, number: status.number })
    await settled()
  }
  const [one, two, three, four] = names.map(name => requestOf(name, '1', exclusive('a', name)))
  try {
    const held = await enqueue(first, one!)
    await enqueue(second, two!)
    await enqueue(third, three!)
    await release(first, one!, held)
    await release(second, two!, await checkIn(second, two!))
    const tried = await enqueue(fresh, requestOf('new', '0', exclusive('a', 'z')), 0)
    if (tried.state !== 'busy') return `a try overtakes a set that waits: ${tried.state}`
    const asked = await enqueue(fresh, four!)
    if (asked.state !== 'queued') return `a new set overtakes one that waits: ${asked.state}`
    await third.woken(three!)
    await release(third, three!, await checkIn(third, three!))
    await fresh.woken(four!)
    await release(fresh, four!, await checkIn(fresh, four!))
    // No request waits any more, even if the entry of its key lists one.
    const { state } = await enqueue(first, requestOf('first', '2', exclusive('a', 'z')), 0)
    return state === 'held' ? undefined : `a free key is not granted: ${state}`
  } finally {
    for (const box of boxes) box.end()
  }
}
