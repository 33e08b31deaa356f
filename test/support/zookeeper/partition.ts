import { expect } from 'vitest'
import type { Box, Grant } from '../../../src/index.js'
import { open } from '../../../src/open.js'
import { queued } from '../../../packages/conformance/src/time.js'
import { UnavailableError } from '../../../src/base/errors.js'
import type { LinkedEnsemble, Roles } from '../servers/zookeeper-ensemble.js'
import type { ZooKeeperServer } from '../servers/zookeeper.js'

/** A fault of an ensemble while a box that reaches only one of its servers holds a lock. */
export interface Partition {
  /** Whether that server leads; default: it follows. */
  readonly isAtLeader?: boolean
  /**
   * Separates that server from the others.
   * @param timeout timeout of the holder's session, in milliseconds
   * @returns a function that connects them again
   */
  begin(ensemble: LinkedEnsemble, roles: Roles, timeout: number): Promise<() => Promise<void> | void>
}

const pass = (...links: ReturnType<LinkedEnsemble['link']>[]) => {
  for (const link of links) link.requests = link.replies = 'pass'
}

/** Stops or kills a server, and brings it back at the end. */
function without(which: 'leader' | 'follower', how: 'pause' | 'kill'): Partition['begin'] {
  return async (_ensemble, roles) => {
    const server = roles[which]
    await server[how]()
    return () => (how === 'pause' ? server.resume() : server.start())
  }
}

/** Holds back the data on the follower's link to its leader, in one or both directions. */
function held(...ways: readonly ('requests' | 'replies')[]): Partition {
  return {
    begin(ensemble, { follower, leader }) {
      const link = ensemble.link(follower, leader)
      for (const way of ways) link[way] = 'hold'
      return Promise.resolve(() => pass(link))
    },
  }
}

export const partitions = {
  'the link of the follower to its leader stalls': held('requests', 'replies'),
  'nothing that the follower says reaches its leader': held('requests'),
  'nothing that the leader says reaches the follower': held('replies'),
  'the link stalls one way, and then the other': {
    async begin(ensemble, { follower, leader }, timeout) {
      const link = ensemble.link(follower, leader)
      link.replies = 'hold'
      await new Promise(resolve => setTimeout(resolve, timeout * 0.6))
      link.requests = 'hold'
      link.replies = 'pass'
      return () => pass(link)
    },
  },
  'the link of the follower to its leader is cut': {
    begin(ensemble, { follower, leader }) {
      const link = ensemble.link(follower, leader)
      const { target } = link
      link.target = undefined
      link.cut()
      return Promise.resolve(() => void (link.target = target))
    },
  },
  'the leader is cut off': {
    isAtLeader: true,
    begin(ensemble, { follower, other, leader }) {
      const links = [follower, other].map(server => ensemble.link(server, leader))
      for (const link of links) link.requests = link.replies = 'hold'
      return Promise.resolve(() => pass(...links))
    },
  },
  'the follower is killed': { begin: without('follower', 'kill') },
  'the follower is stopped': { begin: without('follower', 'pause') },
  'the leader is killed': { isAtLeader: true, begin: without('leader', 'kill') },
  'the leader is stopped': { isAtLeader: true, begin: without('leader', 'pause') },
} satisfies Record<string, Partition>

const TERMS = { lease: '1h', wait: '60s' } as const

/** Locks of two boxes that exclude each other. */
export interface Conflict {
  first(box: Box): Promise<Grant[]>
  second(box: Box): Promise<Grant>
  /** The key on which the second box waits. */
  readonly key: string
}

export const conflicts: Record<string, Conflict> = {
  mutex: {
    first: async box => [await box.mutex('key').acquire(TERMS)],
    second: box => box.mutex('key').acquire(TERMS),
    key: 'key',
  },
  'several keys': {
    first: async box => [await box.mutex('a', 'key').acquire(TERMS)],
    second: box => box.mutex('key', 'z').acquire(TERMS),
    key: 'key',
  },
  semaphore: {
    first: async box => {
      const permits = box.semaphore('key', { max: 2 })
      return [await permits.acquire(TERMS), await permits.acquire(TERMS)]
    },
    second: box => box.semaphore('key', { max: 2 }).acquire(TERMS),
    key: 'key',
  },
  'reader and writer': {
    first: async box => [await box.readWriteLock('key').read.acquire(TERMS)],
    second: box => box.readWriteLock('key').write.acquire(TERMS),
    key: 'key',
  },
  'writer and reader': {
    first: async box => [await box.readWriteLock('key').write.acquire(TERMS)],
    second: box => box.readWriteLock('key').read.acquire(TERMS),
    key: 'key',
  },
  election: {
    first: async box => [await box.election('key').campaign(TERMS)],
    second: box => box.election('key').campaign(TERMS),
    key: 'election:key',
  },
}

/** Two boxes of an ensemble: the first reaches one server alone, the second the other two. */
export class Sides implements AsyncDisposable {
  private constructor(
    readonly ensemble: LinkedEnsemble,
    readonly roles: Roles,
    readonly timeout: number,
    readonly first: Box,
    readonly second: Box,
  ) {}

  /** @param timeout timeout of the sessions, in milliseconds */
  static async open(
    ensemble: LinkedEnsemble,
    place: string,
    { isAtLeader = false }: Partition,
    timeout: number,
  ): Promise<Sides> {
    const roles = await ensemble.roles()
    const one = isAtLeader ? roles.leader : roles.follower
    const rest = ensemble.servers.filter(server => server !== one)
    const at = (...servers: readonly ZooKeeperServer[]) =>
      open(
        `zookeeper://${servers.map(({ address }) => address).join(',')}/${place}?sessionTimeout=${timeout}ms`,
      )
    return new Sides(ensemble, roles, timeout, await at(one), await at(...rest))
  }

  begin(partition: Partition): Promise<() => Promise<void> | void> {
    return partition.begin(this.ensemble, this.roles, this.timeout)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.first.close(), this.second.close()])
  }
}

const holds = (grant: Grant): boolean => {
  try {
    grant.assertHeld()
    return true
  } catch {
    return false
  }
}

/**
 * Maximum wait for the second box, in milliseconds. Without a leader, an ensemble accepts no session, and the separated
 * server may be elected again.
 */
const LONGEST = 10_000

/** Repeats a task for as long as an ensemble without a leader refuses it. */
async function insistently<T>(task: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await task()
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error
    }
  }
}

/**
 * Separates a holder from the ensemble until another box has acquired its lock, and longer. Checks all the time that
 * the first box no longer counts itself as the holder once the second has the lock.
 * @param pause time for which the first box has held the lock before, in milliseconds
 */
export async function neverBoth(
  sides: Sides,
  { first, second, key }: Conflict,
  partition: Partition,
  pause: number,
): Promise<void> {
  const held = await first(sides.first)
  let later: Grant | undefined
  const waiting = insistently(() => second(sides.second)).then(grant => (later = grant))
  await queued(sides.second, key, 1)
  await new Promise(resolve => setTimeout(resolve, pause))
  const overlaps: { at: number; left: number[] }[] = []
  const started = performance.now()
  const look = (): void => {
    if (!later) return
    const left = held.map(grant => grant.expiresIn())
    if (held.every(holds) || left.every(each => each > 0))
      overlaps.push({ at: performance.now() - started, left })
  }
  const looking = setInterval(look, 2)
  const heal = await sides.begin(partition)
  try {
    await Promise.race([waiting, new Promise(resolve => setTimeout(resolve, LONGEST))])
    const until = performance.now() + sides.timeout
    do {
      look()
      await new Promise(setImmediate)
    } while (performance.now() < until)
  } finally {
    await heal()
  }
  look()
  clearInterval(looking)
  expect([overlaps[0], overlaps.at(-1)]).toEqual([undefined, undefined])
  if (later) expect(held.some(grant => grant.signal.aborted)).toBe(true)
  // Both may have lost it. The first may still have it if no leader was found meanwhile.
  await Promise.allSettled(held.map(grant => grant.release()))
  await Promise.allSettled([(await waiting).release()])
}

async function count(box: Box, work: () => Promise<unknown>): Promise<void> {
  await box.store('s').transaction(
    ['key'],
    async tx => {
      const before = tx.get<number>('key') ?? 0
      await work()
      tx.put('key', before + 1)
    },
    TERMS,
  )
}

/** Separates the box of a transaction while it computes, until another transaction has changed the value it read. */
export async function neverLost(sides: Sides, partition: Partition): Promise<void> {
  let begun = (): void => undefined
  const computing = new Promise<void>(resolve => (begun = resolve))
  let goOn = (): void => undefined
  const first = count(sides.first, () => {
    begun()
    return new Promise<void>(resolve => (goOn = resolve))
  }).then(
    () => 2,
    () => 1,
  )
  await computing
  const heal = await sides.begin(partition)
  const second = insistently(() => count(sides.second, () => Promise.resolve()))
  try {
    await Promise.race([second, new Promise(resolve => setTimeout(resolve, LONGEST))])
  } finally {
    await heal()
  }
  goOn()
  const [expected] = await Promise.all([first, second])
  expect(await insistently(() => sides.second.store('s').get('key'))).toMatchObject({ value: expected })
}
