import { expect } from 'vitest'
import { VirtualClock } from '../../src/base/clock.js'
import { StateMachine, type AnyEffect } from '../../src/engine/state-machine.js'
import type {
  Enqueue,
  HolderReport,
  LockRequest,
  Operation,
  RequestStatus,
  SignOutcome,
} from '../../src/engine/contract.js'
import { coverTtl } from '../../src/engine/wait-times.js'
import { MemoryState } from '../../src/engine/kit/memory-state.js'
import type { Claim } from '../../src/engine/claim.js'
import { lockRequest } from './lock-request.js'
import { storedIn, type SentHint, type StoredRequest, type StoredTable } from './stored-table.js'

export const SESSIONS = ['amy', 'ben', 'cat'] as const
export type Session = (typeof SESSIONS)[number]
/** Lock keys. Some of them begin alike, or look like entries of a queue. */
export const LOCKS = ['a', 'b', 'b:0', '1:a', 'o\'\u{1f682}"\\ %']

/** The result of one operation in a port of the lock table. */
export interface Answered {
  readonly answer: unknown
  /** The hints for all sessions. */
  readonly hints: readonly SentHint[]
  /** The keys that the own session has to sweep after the claim window; undefined if its box knows them by the hints. */
  readonly reserved?: readonly string[]
  /** The stored state afterwards. */
  readonly stored: StoredTable
}

/** The differences of a port from the lock table by design. It has no others. */
export interface Differences {
  /** Whether it has enqueues that steal. */
  readonly canSteal?: boolean
  /** Whether one operation revokes the requests of any session. */
  readonly canRevoke?: boolean
  /** Maximum delay of its times, in milliseconds. */
  readonly late?: number
  /** Whether it looks for a holder to report only in front of the first waiter. */
  readonly stopsAtWaiter?: boolean
  /** Whether it keeps several holders as one, which may seem to expire earlier than any of them. */
  readonly groups?: boolean
  /**
   * Whether it keeps an exclusive grant that no other request has contended as keys that expire. Nothing is left of
   * them afterwards, and no hint reports the loss. It reports whether a grant is uncontended, and sends a hint about
   * the first request that waits for it.
   */
  readonly keepsUncontendedAsKeys?: boolean
}

/** A port of the lock table, with a place of its own. */
export interface TablePort {
  readonly differences: Differences
  decide(session: string, operation: Operation, now: number): Promise<Answered>
  /** Stores a table, and nothing else. In Redis, held keys are strings. */
  write(stored: StoredTable, now: number): Promise<void>
  /** Called after the last decision. */
  end?(): void
}

/** Maps numbers or versions of one side to those of the other. New ones appear in the same order on both sides. */
class Counted {
  readonly #other = new Map<number, number>()
  #highest: readonly [number, number] = [0, 0]

  match(one: number, other: number): void {
    if (one === 0 || other === 0) return expect(other).toBe(one)
    const known = this.#other.get(one)
    if (known !== undefined) return expect(other).toBe(known)
    expect(one).toBeGreaterThan(this.#highest[0])
    expect(other).toBeGreaterThan(this.#highest[1])
    this.#highest = [one, other]
    this.#other.set(one, other)
  }

  /** Notes that both sides have this number. */
  know(number: number): void {
    this.#other.set(number, number)
    this.#highest = [Math.max(number, this.#highest[0]), Math.max(number, this.#highest[1])]
  }

  of(one: number): number {
    return this.#other.get(one) ?? one
  }
}

/** The original in memory and a port on a server, which get the same operations at the same times. */
export class World {
  readonly differences: Differences
  readonly #port: TablePort
  readonly #numbers = new Counted()
  readonly #versions = new Counted()
  readonly #claims = new Map<string, readonly Claim[]>()
  /** The last number of each request, as the original has it. */
  readonly granted = new Map<string, number>()
  /** The last operation, if it was an enqueue. */
  repeatable: Enqueue | undefined
  /** Clock time of the next operation. */
  now = 1000
  readonly requests = new Map<string, string[]>(SESSIONS.map(session => [session, []]))
  readonly #state: MemoryState
  readonly #effects: AnyEffect[] = []
  readonly #decisions: StateMachine
  /** The grants that no other request has contended. */
  readonly #uncontended = new Set<string>()

  constructor(port: TablePort, state = new MemoryState(1000, new VirtualClock())) {
    this.#port = port
    this.#state = state
    this.differences = port.differences
    for (const session of SESSIONS) this.#state.join({ session, host: 'host', pid: 1, label: undefined })
    this.#decisions = new StateMachine(this.#state, effect => this.#effects.push(effect))
  }

  /** Creates a world in which both sides have this table already. */
  static async of(port: TablePort, state: MemoryState, now: number): Promise<World> {
    const world = new World(port, state)
    world.now = now
    const stored = storedIn(state)
    for (const { number } of stored.requests.values()) if (number > 0) world.#numbers.know(number)
    for (const { id } of stored.requests.values())
      if (port.differences.keepsUncontendedAsKeys && isAlone(id, stored)) world.#uncontended.add(id)
    await port.write(stored, now)
    return world
  }

  /** Returns the request with this ID, or one that never existed. */
  request(id: string): LockRequest {
    return lockRequest(id, this.#claims.get(id) ?? [{ key: 'a', mode: 'exclusive' }], labelOf(id))
  }

  /** Whether the request exists and has expired. */
  isExpired(id: string): boolean {
    return (this.#state.request(id)?.expires ?? Infinity) <= this.now
  }

  /** Executes an operation on both sides, and compares the results. */
  async decide(session: string, operation: Operation): Promise<void> {
    const { now } = this
    const before = storedIn(this.#state)
    const uncontended = new Set(this.#uncontended)
    const outcome = this.#decisions.decide(operation, now)
    const stored = storedIn(this.#state)
    const hints = this.#effects
      .splice(0)
      .flatMap((effect): SentHint[] => (effect.type === 'changed' ? [] : [effect]))
    const answered = await this.#port.decide(session, this.#translated(operation), now)
    this.#compareAnswers(operation, outcome, answered.answer, stored)
    const contended = this.#contend(operation, outcome, before, stored, now)
    const isForgotten = ({ id, expires }: StoredRequest): boolean => uncontended.has(id) && expires <= now
    const isTold = ({ type, id }: SentHint): boolean =>
      type !== 'lost' || !isForgotten(before.requests.get(id)!)
    this.#compareHints(session, [...hints.filter(isTold), ...contended], answered)
    if (operation.type === 'extendOrYield' && 'isUncontended' in (answered.answer as object))
      expect(answered.answer).toMatchObject({ isUncontended: this.#uncontended.has(operation.request.id) })
    this.#compareTables(stored, answered.stored, isForgotten)
    this.#learn(session, operation, outcome)
  }

  #translated(operation: Operation): Operation {
    switch (operation.type) {
      case 'renew':
      case 'release':
      case 'extendOrYield':
      case 'downgrade':
      case 'forceRelease':
        return { ...operation, number: this.#numbers.of(operation.number) }
      case 'commit':
        return {
          ...operation,
          guard: operation.guard && { ...operation.guard, number: this.#numbers.of(operation.guard.number) },
          expect: operation.expect.map(({ key, version }) => ({ key, version: this.#versions.of(version) })),
        }
      default:
        return operation
    }
  }

  #compareAnswers(operation: Operation, outcome: unknown, answer: unknown, stored: StoredTable): void {
    switch (operation.type) {
      case 'enqueue':
      case 'checkIn':
      case 'extendOrYield':
        return this.#compareStatus(outcome as RequestStatus, answer as RequestStatus, stored)
      case 'alive': {
        const [one, other] = [outcome as SignOutcome, answer as SignOutcome]
        expect(other.due).toEqual(one.due)
        return this.#compareDelays(one.next, other.next, 'next')
      }
      case 'commit':
      case 'read':
        this.#matchVersions(outcome, answer)
        return expect(withoutVersions(answer)).toEqual(withoutVersions(outcome))
      default:
        return expect(answer).toEqual(outcome)
    }
  }

  #compareStatus(one: RequestStatus, other: RequestStatus, stored: StoredTable): void {
    expect(other.state).toBe(one.state)
    if (one.state === 'held' && other.state === 'held') {
      expect(other.id).toBe(one.id)
      this.#numbers.match(one.number, other.number)
      if (one.read) this.#matchVersions(one.read, other.read)
      expect(withoutVersions(other.read)).toEqual(withoutVersions(one.read))
      return
    }
    if (one.state !== 'queued' || other.state !== 'queued') return expect(other).toEqual(one)
    this.#compareDelays(one.checkInAfter, other.checkInAfter, 'checkInAfter')
    const holder = this.differences.stopsAtWaiter ? this.#holderBeforeWaiters(one.id, stored) : one.holder
    if (holder && other.holder) this.#compareTimes(holder.age, other.holder.age, 'age of the holder')
    // The contract lets an engine count only the first requests. Ports do not know which sessions have died.
    const plain = (status: RequestStatus & { state: 'queued' }): object => ({
      ...{ ...status, place: Math.min(status.place, 2), checkInAfter: 0, sessionsAhead: [] },
      holder: status.holder && { ...status.holder, age: 0 },
    })
    expect(plain(other)).toEqual(plain({ ...one, holder }))
  }

  /** Returns the first holder that a port finds ahead of a request, key by key, without reading past a waiter. */
  #holderBeforeWaiters(id: string, { requests, queues }: StoredTable): HolderReport | undefined {
    const holders = requests.get(id)!.claims.flatMap(({ key }) => {
      const ahead = queues.get(key)!.map(each => requests.get(each)!)
      const end = ahead.findIndex(
        each => each.id === id || (each.phase === 'waiting' && !isSilent(each, this.now)),
      )
      return ahead.slice(0, end).filter(({ phase }) => phase === 'held')
    })
    const [holder] = holders
    if (!holder) return undefined
    return {
      ...{ session: sessionOf(holder.id), host: 'host', pid: 1 },
      label: holder.label,
      age: this.now - holder.since,
    }
  }

  #compareDelays(one: number, other: number, what: string): void {
    if (one === Infinity) return expect(other, what).toBe(Infinity)
    if (this.differences.groups) return expect(other, what).toBeLessThanOrEqual(one)
    this.#compareTimes(one, other, what)
  }

  #compareTimes(one: number, other: number, what: string): void {
    const { late = 0 } = this.differences
    expect(Math.abs(other - one), `${what}: ${other}, not ${one}`).toBeLessThanOrEqual(late)
  }

  #matchVersions(outcome: unknown, answer: unknown): void {
    const one = versionsIn(outcome)
    const other = versionsIn(answer)
    expect(other.length).toBe(one.length)
    for (const [index, version] of one.entries()) this.#versions.match(version, other[index]!)
  }

  /**
   * Tracks the grants that no other request has contended. Returns the hints to grants that this operation contends.
   */
  #contend(
    operation: Operation,
    outcome: unknown,
    before: StoredTable,
    after: StoredTable,
    now: number,
  ): SentHint[] {
    if (!this.differences.keepsUncontendedAsKeys) return []
    const contended: SentHint[] = []
    const contend = (id: string): void => {
      const isHeld = now < (before.requests.get(id)?.expires ?? 0)
      if (this.#uncontended.has(id) && isHeld && this.#uncontended.delete(id))
        contended.push({ session: sessionOf(id), type: 'contended', id })
    }
    const isSteal = operation.type === 'enqueue' && operation.steal === true
    for (const { id, phase, claims } of isSteal ? [...before.requests.values()] : after.requests.values()) {
      const isNew = isSteal || !before.requests.has(id)
      if (!isNew || (phase === 'held' && !isSteal)) continue
      for (const { key } of isSteal ? operation.request.claims : claims)
        for (const other of (isSteal ? before : after).queues.get(key) ?? []) contend(other)
    }
    for (const id of this.#uncontended)
      if (after.requests.get(id)?.claims.some(({ mode }) => mode !== 'exclusive') !== false)
        this.#uncontended.delete(id)
    if (operation.type !== 'enqueue' && operation.type !== 'extendOrYield') return contended
    const status = outcome as RequestStatus
    if (status.state !== 'held' || isSteal) return contended
    if (isAlone(status.id, after)) this.#uncontended.add(status.id)
    return contended
  }

  #compareHints(session: string, hints: readonly SentHint[], answered: Answered): void {
    const text = ({ session: to, type, id }: SentHint): string => `${to} ${type} ${id}`
    expect(answered.hints.map(text).sort()).toEqual(hints.map(text).sort())
    if (!answered.reserved) return
    const woken = hints.filter(hint => hint.type === 'wake' && hint.session !== session)
    expect(answered.reserved.length).toBe(woken.length)
    for (const { id } of woken) {
      const keys = this.#state.request(id)?.claims.map(({ key }) => key) ?? []
      expect(answered.reserved.some(key => keys.includes(key))).toBe(true)
    }
  }

  #compareTables(
    one: StoredTable,
    other: StoredTable,
    isForgotten: (request: StoredRequest) => boolean,
  ): void {
    const expected = [...one.requests.values()].filter(request => !isForgotten(request))
    expect([...other.requests.keys()].sort()).toEqual(expected.map(({ id }) => id).sort())
    for (const request of expected) {
      const its = other.requests.get(request.id)!
      const what = `${request.id} ${request.phase}`
      this.#numbers.match(request.number, its.number)
      this.#compareTimes(expiryOf(request), expiryOf(its), `${what} expires`)
      this.#compareTimes(request.since, its.since, `${what} since`)
      if (request.seen !== undefined && request.seen > -Infinity)
        this.#compareTimes(request.seen, its.seen!, `${what} seen`)
      if (its.lease !== undefined) expect(its.lease, what).toBe(request.lease)
      const plain = ({ phase, label, seen, claims }: StoredRequest): object => ({
        ...{ phase, label, isCovered: seen !== undefined, claims },
      })
      expect(plain(its), what).toEqual(plain(request))
    }
    const keys = new Set([...one.queues.keys(), ...other.queues.keys()])
    for (const key of keys) {
      const queue = (one.queues.get(key) ?? []).filter(id => other.requests.has(id))
      expect(other.queues.get(key) ?? [], `queue of ${key}`).toEqual(queue)
    }
  }

  #learn(session: string, operation: Operation, outcome: unknown): void {
    const { type } = operation
    this.repeatable = type === 'enqueue' ? operation : undefined
    if (type === 'downgrade' && outcome === true) {
      const { id, claims } = operation.request
      this.#claims.set(
        id,
        claims.map(({ key }) => ({ key, mode: 'shared' })),
      )
    }
    if (type !== 'enqueue' && type !== 'checkIn' && type !== 'extendOrYield') return
    const status = outcome as RequestStatus
    if (status.state !== 'held' && status.state !== 'queued') return
    const own = this.requests.get(session) ?? []
    if (sessionOf(status.id) === session && !own.includes(status.id)) own.push(status.id)
    if (type === 'enqueue') this.#claims.set(status.id, operation.request.claims)
    if (type === 'extendOrYield' && status.id === operation.next.id) {
      this.#claims.set(status.id, operation.next.claims)
    }
    if (status.state === 'held') this.granted.set(status.id, status.number)
  }
}

/** The label of a request; some have none. */
export function labelOf(id: string): string | undefined {
  return id.endsWith('3') ? `label of ${id}` : undefined
}

/** Whether a request holds its keys exclusively, and no other request has one of them. */
export function isAlone(id: string, { requests, queues }: StoredTable): boolean {
  const { phase, claims } = requests.get(id)!
  return (
    phase === 'held' && claims.every(({ key, mode }) => mode === 'exclusive' && queues.get(key)!.length === 1)
  )
}

/** Whether a waiter is silent, so that it blocks no other. */
function isSilent(waiter: StoredRequest, now: number): boolean {
  return now >= expiryOf(waiter)
}

/** When a request expires: a waiter that is covered lives as long as its session sends signs. */
function expiryOf({ expires, seen, lease }: StoredRequest): number {
  return seen === undefined ? expires : Math.max(expires, seen + coverTtl(lease!))
}

function sessionOf(id: string): string {
  return id.slice(0, id.indexOf('.'))
}

/** Returns a reply without the versions, which `#matchVersions` compares. */
function withoutVersions(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value ?? null, (name, field: unknown) =>
      name === 'version' || name === 'changed' || name === 'versions' ? undefined : field,
    ),
  )
}

function versionsIn(value: unknown): number[] {
  if (Array.isArray(value)) return value.flatMap(versionsIn)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, field]) => {
    if (name === 'version') return [field as number]
    return name === 'versions' ? (field as number[]) : versionsIn(field)
  })
}
