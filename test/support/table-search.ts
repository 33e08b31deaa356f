import { VirtualClock } from '../../src/base/clock.js'
import type { Claim } from '../../src/engine/claim.js'
import type { LockRequest, RequestStatus, SignOutcome } from '../../src/engine/contract.js'
import { WAITER_TTL } from '../../src/engine/wait-times.js'
import { MemoryState } from '../../src/engine/kit/memory-state.js'
import { LockTable } from '../../src/engine/lock-table.js'
import type { Effect, Request } from '../../src/engine/table-state.js'
import { NaiveTable } from '../unit/engine/naive-table.js'
import type { TableOperation } from './stored-table.js'

/** Longer than a waiter blocks others without a sign, so that it then keeps its place for a while. */
const LEASE = WAITER_TTL + 1000
/** Clock time of each operation of the search. */
export const NOW = 100_000
/** The number of the last grant in each state. */
const NUMBER = 1000

const KEYS = ['a', 'b'] as const
const MODES = {
  X: (key: string): Claim => ({ key, mode: 'exclusive' }),
  S: (key: string): Claim => ({ key, mode: 'shared' }),
  P: (key: string): Claim => ({ key, mode: 'permits', permits: 1, max: 2 }),
}
/** The claims of requests, by the modes on both keys. */
export const ALL_CLAIMS = ['X.', '.X', 'S.', '.S', 'P.', '.P', 'XX', 'SS', 'SX', 'XS', 'PX', 'XP'] as const

function claimsOf(modes: string): readonly Claim[] {
  return KEYS.flatMap((key, place) => MODES[modes[place] as keyof typeof MODES]?.(key) ?? [])
}

/** A request of a state. Its place determines its session, and the number of its grant. */
interface Entry {
  readonly claims: readonly Claim[]
  readonly phase: Request['phase']
  /** Time until it expires, in milliseconds; negative after that. */
  readonly left: number
  readonly isCovered: boolean
}

/** The requests in order of arrival. */
type State = readonly Entry[]

/** An operation on a state, by a session. */
export interface Transition {
  /** Makes the table in the state before the operation. */
  readonly table: () => MemoryState
  readonly session: string
  readonly operation: TableOperation
}

/** The limits of a search. */
interface Scope {
  /** The claims of requests, of {@link ALL_CLAIMS}. */
  readonly claims: readonly string[]
  /** Maximum number of requests at a time, each of a session of its own. */
  readonly requests: number
  /** Maximum number of operations in a row. */
  readonly maxDepth: number
}

/** The extent of a search. */
interface Searched {
  readonly states: number
  readonly transitions: number
  /** Number of operations in a row within which each state can be reached. */
  readonly depth: number
  /** Whether no further states follow. */
  readonly isComplete: boolean
}

/**
 * Searches the states of the lock table breadth first: three sessions with a request each, two keys, all operations in
 * every state, also repeated and on absent requests, and time that passes to the next expiry. States that differ only
 * by the names of sessions or keys count as one.
 * @param visit is called with each operation before it is executed
 * @throws Error with the steps to an operation that breaks a promise of the table
 */
export function searchTable(
  { claims, requests, maxDepth }: Scope,
  visit?: (transition: Transition) => void,
): Searched {
  const ways = new Map<string, readonly [before: string, step: string]>([['', ['', '']]])
  const claimSets = claims.map(claimsOf)
  let level: State[] = [[]]
  let transitions = 0
  let depth = 0
  for (; depth < maxDepth && level.length > 0; depth++) {
    const next: State[] = []
    for (const state of level) {
      const name = nameOf(state)
      const reach = (found: State, step: object): void => {
        transitions++
        const its = nameOf(found)
        if (ways.has(its)) return
        ways.set(its, [name, JSON.stringify(step)])
        next.push(found)
      }
      for (const [session, operation] of operationsIn(state, state.length < requests ? claimSets : [])) {
        visit?.({ table: () => tableOf(state), session, operation })
        try {
          reach(after(state, operation), operation)
        } catch (error) {
          const way = [`${JSON.stringify(operation)} in ${name}`]
          for (let at = name; at !== ''; at = ways.get(at)![0])
            way.unshift(`${ways.get(at)![1]} leads to ${at}`)
          throw new Error(`${(error as Error).message}:\n${way.join('\n')}`, { cause: error })
        }
      }
      const passes = untilChange(state)
      if (passes < Infinity)
        reach(canonical(state.map(each => ({ ...each, left: each.left - passes }))), { passes })
    }
    level = next
  }
  return { states: ways.size, transitions, depth, isComplete: level.length === 0 }
}

const naive = new NaiveTable(0)

/** Returns the state after an operation. Checks its effects. */
function after(state: State, operation: TableOperation): State {
  const table = tableOf(state)
  const effects: Effect[] = []
  const before = [...table.requests()].map(request => ({ ...request }))
  const outcome = new LockTable(table, effect => void effects.push(effect)).decide(operation, NOW)
  const requests = [...table.requests()]
  check(operation, outcome, before, requests, table, effects)
  return canonical(
    requests.map(request => {
      const { claims, phase, expires, isCovered, session } = request
      const isKept = phase === 'waiting' && isCovered === true
      const until = isKept ? Math.max(expires, table.seen(session) + Math.min(LEASE, WAITER_TTL)) : expires
      return { claims, phase, left: until - NOW, isCovered: isKept }
    }),
  )
}

function check(
  operation: TableOperation,
  outcome: unknown,
  before: readonly Request[],
  requests: readonly Request[],
  table: MemoryState,
  effects: readonly Effect[],
): void {
  const isLive = (request: Request): boolean => {
    const { phase, isCovered, session, expires } = request
    return (
      NOW < (phase === 'waiting' && isCovered ? Math.max(expires, table.seen(session) + WAITER_TTL) : expires)
    )
  }
  const ahead = (request: Request): Request[] => requests.slice(0, requests.indexOf(request)).filter(isLive)
  const known = (id: string): Request | undefined => before.find(request => request.id === id)
  const isSteal = operation.type === 'enqueue' && operation.steal === true
  for (const request of requests) {
    const { id, phase, claims, number } = request
    // Exclusion, and the order of arrival.
    if (phase !== 'waiting' && isLive(request))
      must(naive.mayHold(request, ahead(request)), `${id} goes with those ahead`)
    // All or nothing.
    for (const key of KEYS) {
      const places = (table.queue(key) ?? []).filter(entry => entry.request === request).length
      must(places === (claims.some(claim => claim.key === key) ? 1 : 0), `${id} is in the queues of its keys`)
    }
    const earlier = known(id)
    if (phase === 'held' && (earlier?.phase !== 'held' || earlier.number !== number)) {
      must(number > NUMBER, `the number of ${id} is greater than each before`)
      for (const other of requests.slice(0, requests.indexOf(request)))
        if (!naive.mayHold(request, [other])) must(isLive(other), `no silent request is left ahead of ${id}`)
    }
    if (phase === 'reserved' && earlier?.phase !== 'reserved')
      must(
        effects.some(effect => effect.type === 'wake' && effect.id === id),
        `${id} is woken`,
      )
  }
  for (const key of KEYS) {
    const order = (table.queue(key) ?? []).map(({ request }) => requests.indexOf(request))
    must(
      order.every((place, index) => index === 0 || place > order[index - 1]!),
      `the queue of ${key} is in order of arrival`,
    )
  }
  const kept = requests.filter(({ id }) => known(id))
  must(
    isSteal ||
      before
        .filter(({ id }) => kept.some(request => request.id === id))
        .every(({ id }, place) => kept[place]!.id === id),
    'requests keep their order',
  )
  for (const { id } of before) {
    const isGone = !requests.some(request => request.id === id)
    const isOwn = 'request' in operation && operation.request.id === id && operation.type !== 'checkIn'
    if (isGone && !isOwn)
      must(
        effects.some(effect => effect.type === 'lost' && effect.id === id),
        `${id} learns that it is lost`,
      )
  }
  if (operation.type === 'cancel' || (operation.type === 'release' && outcome === true))
    must(
      !requests.some(({ id }) => id === operation.request.id),
      'nothing is left of a request that was given up',
    )
  // A request that still waits for keys that were served is blocked by one ahead.
  const served = servedBy(operation, outcome, before)
  for (const request of requests) {
    if (request.phase !== 'waiting' || !isLive(request)) continue
    if (request.claims.every(({ key }) => served.has(key)))
      must(!naive.mayHold(request, ahead(request)), `${request.id} waits for a request ahead`)
  }
  const answer = outcome as RequestStatus | undefined
  if (operation.type === 'alive') {
    const named = operation.requests.map(({ id }) => id)
    const { due, next } = outcome as SignOutcome
    const waiting = requests.filter(({ id, phase }) => named.includes(id) && phase === 'waiting')
    must(
      due.join() === named.filter(id => !waiting.some(request => request.id === id)).join(),
      'a sign names those due',
    )
    must(
      next === Math.min(...waiting.map(request => firstEnd(request, requests, isLive))),
      'a sign comes at the next end',
    )
  } else if (typeof answer === 'object' && answer.state === 'queued') {
    const request = requests.find(({ id }) => id === answer.id)!
    const end = request.phase === 'reserved' ? 0 : firstEnd(request, requests, isLive)
    must(
      answer.checkInAfter === Math.max(end, 0),
      `${answer.id} checks in after ${end} ms, not ${answer.checkInAfter}`,
    )
    const place = requests
      .slice(0, requests.indexOf(request))
      .filter(other => shareFirstKey(request, other)).length
    must(answer.place === place, `${answer.id} has ${place} requests ahead, not ${answer.place}`)
  }
}

/** Time until a holder or a reservation expires on any key of the request where it is the first waiter. */
function firstEnd(
  request: Request,
  requests: readonly Request[],
  isLive: (request: Request) => boolean,
): number {
  const ends = request.claims.flatMap(({ key }) => {
    const others = requests
      .slice(0, requests.indexOf(request))
      .filter(each => each.claims.some(claim => claim.key === key))
    if (others.some(other => other.phase === 'waiting' && isLive(other))) return []
    return others.filter(({ phase }) => phase !== 'waiting').map(({ expires }) => expires - NOW)
  })
  return Math.min(...ends)
}

/** Returns the keys whose queues an operation has served. */
function servedBy(
  operation: TableOperation,
  outcome: unknown,
  before: readonly Request[],
): ReadonlySet<string> {
  const keys = (requests: readonly Pick<LockRequest, 'claims'>[]): ReadonlySet<string> =>
    new Set(requests.flatMap(({ claims }) => claims.map(({ key }) => key)))
  switch (operation.type) {
    case 'alive':
      return keys(operation.requests)
    case 'sweepExpired':
      return new Set(operation.keys)
    case 'release':
    case 'downgrade':
      return outcome === true ? keys([operation.request]) : new Set()
    case 'cancel':
    case 'checkIn': {
      const known = before.find(({ id }) => id === operation.request.id)
      return known && (operation.type === 'cancel' || known.phase === 'waiting') ? keys([known]) : new Set()
    }
    case 'revoke':
      return keys(before.filter(({ session }) => session === operation.session))
    default:
      return new Set()
  }
}

function shareFirstKey(one: Request, other: Request): boolean {
  return other.claims.some(({ key }) => key === one.claims[0]!.key)
}

function must(condition: boolean, what: string): void {
  if (!condition) throw new Error(`not so: ${what}`)
}

const clock = new VirtualClock()

function tableOf(state: State): MemoryState {
  const table = new MemoryState(NUMBER, clock)
  for (const [place, { claims, phase, left, isCovered }] of state.entries()) {
    const session = `s${place}`
    table.join({ session, host: 'host', pid: 1, label: undefined })
    const number = phase === 'held' ? place + 1 : 0
    table.append({
      ...{ id: `${session}.1`, session, claims, phase, number, isCovered },
      ...{ expires: NOW + left, lease: LEASE, label: undefined, since: NOW },
    })
  }
  return table
}

/** All operations in a state, with the sessions that send them. */
function* operationsIn(
  state: State,
  claimSets: readonly (readonly Claim[])[],
): Generator<readonly [session: string, operation: TableOperation]> {
  const terms = { lease: LEASE, wait: Infinity }
  for (const [place, { claims }] of state.entries()) {
    const session = `s${place}`
    const request: LockRequest = { id: `${session}.1`, session, claims, label: undefined }
    const next: LockRequest = { ...request, id: `${session}.2` }
    const number = place + 1
    const gone: LockRequest = { ...request, id: `${session}.0` }
    yield [session, { type: 'enqueue', request, ...terms }]
    yield [session, { type: 'checkIn', request, ...terms }]
    yield [session, { type: 'checkIn', request: gone, ...terms }]
    yield [session, { type: 'alive', session, requests: [request] }]
    yield [session, { type: 'alive', session, requests: [request, gone] }]
    yield [session, { type: 'cancel', request }]
    yield [session, { type: 'renew', request, number, lease: LEASE }]
    yield [session, { type: 'release', request, number }]
    yield [session, { type: 'release', request, number: number + 1 }]
    yield [session, { type: 'extendOrYield', request, number, next, ...terms }]
    yield [session, { type: 'extendOrYield', request: gone, number, next: request, ...terms }]
    if (claims.every(({ mode }) => mode !== 'permits'))
      yield [session, { type: 'downgrade', request, number }]
    yield [session, { type: 'forceRelease', key: claims[0]!.key, number }]
    yield [session, { type: 'revoke', session }]
  }
  const session = `s${state.length}`
  for (const key of KEYS) yield [session, { type: 'sweepExpired', keys: [key] }]
  yield [session, { type: 'sweepExpired', keys: KEYS }]
  for (const claims of claimSets) {
    const request: LockRequest = { id: `${session}.1`, session, claims, label: undefined }
    yield [session, { type: 'enqueue', request, ...terms }]
    yield [session, { type: 'enqueue', request, lease: LEASE, wait: 0 }]
    if (claims.every(({ mode }) => mode === 'exclusive'))
      yield [session, { type: 'enqueue', request, ...terms, steal: true }]
  }
}

/** Time until a request expires, or loses its place, in milliseconds. */
function untilChange(state: State): number {
  const times = state.flatMap(({ phase, left }) => (phase === 'waiting' ? [left, left + keptFor] : [left]))
  return Math.min(...times.filter(time => time > 0))
}

/** Time for which a silent waiter keeps its place, in milliseconds. */
const keptFor = LEASE - WAITER_TTL

/** Returns the same state for all that differ only by the names of the keys, or by times that no longer matter. */
function canonical(state: State): State {
  const known = state.map((entry): Entry => ({
    ...entry,
    left: Math.max(entry.left, entry.phase === 'waiting' ? -keptFor : 0),
  }))
  const other = known.map((entry): Entry => ({
    ...entry,
    claims: entry.claims
      .map((claim): Claim => ({ ...claim, key: claim.key === 'a' ? 'b' : 'a' }))
      .toSorted((one, two) => (one.key < two.key ? -1 : 1)),
  }))
  return nameOf(known) <= nameOf(other) ? known : other
}

function nameOf(state: State): string {
  return state
    .map(({ claims, phase, left, isCovered }) => {
      const modes = claims.map(({ key, mode }) => `${mode[0]}${key}`).join('')
      return `${modes} ${isCovered ? 'covered' : phase} ${left}`
    })
    .join(', ')
}
