import type { LockRequest, Operation } from '../../src/engine/contract.js'
import { claimSet } from '../../src/core/claims.js'
import type { Claim } from '../../src/engine/claim.js'
import type { Random } from '../../packages/conformance/src/random.js'
import { labelOf, LOCKS, type Session, type World } from './table-world.js'
import { lockRequest } from './lock-request.js'

const VALUES = ['s/x', 's/y', 's/z']

/** Returns a random operation of a session. @param wide whether it may claim several keys exclusively */
export function randomOperation(
  random: Random,
  world: World,
  session: Session,
  step: number,
  wide: boolean,
): Operation {
  const own = world.requests.get(session)!
  const id = own.at(-1 - random.below(Math.min(4, Math.max(1, own.length)))) ?? 'amy.none'
  const request = world.request(id)
  const number = random.below(5) > 0 ? (world.granted.get(id) ?? 1) : 1
  const lease = [100, 1000, 30_000][random.below(3)]!
  const wait = [0, 50, 5000, Infinity, Infinity][random.below(5)]!
  const read =
    random.below(3) > 0 ? undefined : { keys: random.some(VALUES, 2), ids: [{ key: VALUES[0]!, id: 'one' }] }
  switch (random.below(17)) {
    case 0:
    case 1:
    case 2:
    case 3: {
      const keys = random.some(LOCKS, 1 + random.below(3))
      const several = keys.map(key => claim(random, key))
      const alone = !wide && several.every(({ mode }) => mode === 'exclusive')
      const { claims } = claimSet(alone ? several.slice(0, 1) : several)
      // Now and then a session repeats a request, as after the loss of its answer.
      if (random.below(3) === 0 && world.repeatable?.request.session === session) return world.repeatable
      const fresh = asked(`${session}.${step}`, claims)
      // A port may free the other keys of a wide grant later than the original does.
      if (world.differences.canSteal && !wide && random.below(4) === 0) {
        const key = asked(fresh.id, [{ key: keys[0]!, mode: 'exclusive' }])
        return { type: 'enqueue', request: key, lease, wait: Infinity, steal: true }
      }
      return { type: 'enqueue', request: fresh, lease, wait, read }
    }
    case 4:
    case 5:
      return { type: 'checkIn', request, lease, wait: Math.max(wait, 1), read }
    case 6:
      return { type: 'cancel', request }
    case 7:
      return { type: 'renew', request, number, lease }
    case 8:
    case 9:
      return { type: 'release', request, number }
    case 10:
      return {
        type: 'extendOrYield',
        request,
        number,
        next: asked(`${session}.${step}`, request.claims),
        lease,
        wait: Math.max(wait, 1),
      }
    case 11:
      return random.below(3) === 0
        ? { type: 'downgrade', request, number }
        : { type: 'sweepExpired', keys: random.some(LOCKS, 2) }
    case 12:
      // An operator looks a grant up first, and finds none that has expired.
      if (random.below(2) === 0 && !world.isExpired(id))
        return { type: 'forceRelease', key: request.claims[0]!.key, number }
      if (world.differences.canRevoke && random.below(4) === 0) return { type: 'revoke', session }
      return { type: 'sweepExpired', keys: random.some(LOCKS, 2) }
    case 14:
    case 15:
    case 16: {
      const named = own.slice(-6).filter(() => random.below(4) > 0)
      return { type: 'alive', session, requests: named.map(each => world.request(each)) }
    }
    default: {
      const keys = random.some(VALUES, 2)
      const guard = random.below(2) === 0 ? undefined : { request, number }
      return {
        type: 'commit',
        guard,
        expect: random.below(2) === 0 ? [] : [{ key: keys[0]!, version: random.below(2) }],
        writes: keys.map(key => ({ key, value: random.below(4) === 0 ? undefined : `{"at":${step}}` })),
        record: random.below(3) === 0 ? [{ key: VALUES[0]!, id: ['one', 'two'][random.below(2)]! }] : [],
        retention: 1e9,
        release: random.below(2) === 0,
      }
    }
  }
}

/** Returns a random operation of a session while many requests wait for two keys. Parameters as of randomOperation. */
export function crowdedOperation(
  random: Random,
  world: World,
  session: Session,
  step: number,
  wide: boolean,
): Operation {
  const own = world.requests.get(session)!
  const request = world.request(own[random.below(Math.max(1, own.length))] ?? 'amy.none')
  const [id, number] = [...world.granted].reduce((one, other) => (other[1] > one[1] ? other : one), [
    'amy.none',
    1,
  ] as const)
  const holder = world.request(id)
  const lease = random.below(8) === 0 ? 1000 : 30_000
  const kind = random.below(step < 25 ? 30 : 16)
  if (kind >= 14) {
    if (random.below(6) === 0 && world.repeatable?.request.session === session) return world.repeatable
    // Requests for both keys often have few ahead of them on the one, and many on the other.
    const [a, b] = LOCKS as [string, string]
    const keys = wide ? [[a], [a, b], [a, b], [b], [b], [b], [b]][random.below(7)]! : [a]
    const { claims } = claimSet(
      keys.map(key => (random.below(4) === 0 ? claim(random, key) : ({ key, mode: 'exclusive' } as const))),
    )
    const wait = random.below(10) === 0 ? 50 : Infinity
    return { type: 'enqueue', request: asked(`${session}.${step}`, claims), lease, wait }
  }
  if (kind < 3) return { type: 'cancel', request }
  if (kind < 5) return { type: 'release', request: holder, number }
  if (kind < 7) {
    const next = asked(`${session}.${step}`, holder.claims)
    return { type: 'extendOrYield', request: holder, number, next, lease, wait: Infinity }
  }
  if (kind < 9) return { type: 'checkIn', request, lease, wait: Infinity }
  if (kind < 11) {
    const named = own.filter(() => random.below(3) > 0)
    return { type: 'alive', session, requests: named.map(each => world.request(each)) }
  }
  // All waiters that can be woken check in soon.
  const waiting = [...world.requests.values()].flat().find(each => !world.granted.has(each))
  if (kind < 13 && waiting) return { type: 'checkIn', request: world.request(waiting), lease, wait: Infinity }
  return { type: 'sweepExpired', keys: LOCKS.slice(0, 2) }
}

/** Returns a random operation of a session while many requests hold one key, and some others wait. */
export function togetherOperation(random: Random, world: World, session: Session, step: number): Operation {
  const own = world.requests.get(session)!
  const id = own[random.below(Math.max(1, own.length))] ?? 'amy.none'
  const request = world.request(id)
  const number = random.below(10) > 0 ? (world.granted.get(id) ?? 1) : 1
  const lease = random.below(3) === 0 ? 1000 : 30_000
  const kind = random.below(step < 25 ? 24 : 18)
  if (kind < 5) return { type: 'release', request, number }
  if (kind === 5) return { type: 'cancel', request }
  if (kind === 6) return { type: 'renew', request, number, lease }
  if (kind === 7) return { type: 'sweepExpired', keys: LOCKS.slice(0, 1) }
  const waiting = own.find(each => !world.granted.has(each))
  if (kind < 11 && waiting) return { type: 'checkIn', request: world.request(waiting), lease, wait: Infinity }
  const key = LOCKS[0]!
  const permits: Claim = {
    key,
    mode: 'permits',
    permits: 1 + random.below(3),
    max: random.below(20) === 0 ? 13 : 12,
  }
  const one = random.below(12) === 0 ? claim(random, key) : permits
  const wait = random.below(3) === 0 ? 0 : Infinity
  return { type: 'enqueue', request: asked(`${session}.${step}`, [one]), lease, wait }
}

function asked(id: string, claims: readonly Claim[]): LockRequest {
  return lockRequest(id, claims, labelOf(id))
}

function claim(random: Random, key: string): Claim {
  switch (random.below(4)) {
    case 0:
      return { key, mode: 'shared' }
    case 1:
      return { key, mode: 'permits', permits: 1 + random.below(3), max: random.below(6) === 0 ? 4 : 3 }
    default:
      return { key, mode: 'exclusive' }
  }
}
