import { beforeEach, describe, expect, test } from 'vitest'
import { UnavailableError, type Claim } from 'signalbox'
import {
  HEARTBEAT_INTERVAL,
  type Listener,
  type LockRequest,
  type Operation,
  type Renew,
  type RequestStatus,
  type SessionInfo,
  type SignOutcome,
} from 'signalbox/engine'
import { VirtualClock } from 'signalbox/limits'
import type { RedisServer, VoteTerms } from 'signalbox/redis'
import { NumberClock } from '../src/number-clock.js'
import { QuorumEngine } from '../src/quorum-engine.js'

/** An operation that a server must execute, until the test answers it. */
interface Question {
  readonly operation: Operation & { readonly request: LockRequest }
  readonly vote: VoteTerms | undefined
  answer(outcome: unknown): Promise<void>
}

/** A server whose answers the test gives. */
class Server {
  readonly questions: Question[] = []
  hints!: Listener
  readonly engine: RedisServer

  constructor(name: string) {
    this.engine = {
      name,
      prefix: '',
      join: async (_: SessionInfo, listener: Listener) => {
        this.hints = listener
      },
      submit: (operation: Operation, vote?: VoteTerms) =>
        new Promise<never>((resolve, reject) => {
          this.questions.push({
            operation: operation as Question['operation'],
            vote,
            answer: (outcome: unknown) => {
              if (outcome instanceof Error) reject(outcome)
              else resolve(outcome as never)
              return tick()
            },
          })
        }),
      listen: async () => undefined,
      reports: async () => [],
      raise: async () => undefined,
      leave: async () => undefined,
    }
  }

  /** Returns the next operation of the server, and checks its type. */
  next(type: Operation['type']): Question {
    const question = this.questions.shift()
    expect(question?.operation.type).toBe(type)
    return question!
  }
}

function tick(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

const LEASE = 30_000
/** A key whose votes are requested from the servers in their order, the first server first. */
const KEY = 'lock'
const QUEUED: RequestStatus = { state: 'queued', id: 'r', place: 1, checkInAfter: 1000, sessionsAhead: [] }
const held = (number: number): RequestStatus => ({ state: 'held', id: 'r', number })

describe('a request over three servers', () => {
  let clock: VirtualClock
  let engine: QuorumEngine
  let servers: [Server, Server, Server]
  let lost: string[]

  beforeEach(async () => {
    clock = new VirtualClock()
    lost = []
    servers = [new Server('a'), new Server('b'), new Server('c')]
    const parts = { name: 'quorum', servers: servers.map(server => server.engine), clock }
    engine = new QuorumEngine({ ...parts, numbers: new NumberClock(() => 1000) })
    const listener = {
      wake: () => undefined,
      lost: (id: string) => lost.push(id),
      contended: () => undefined,
    }
    await engine.join({ session: 's', host: 'h', pid: 1, label: undefined }, listener as unknown as Listener)
  })

  function request(id: string): LockRequest {
    const claims: Claim[] = [{ key: KEY, mode: 'exclusive' }]
    return { id, session: 's', claims, label: undefined }
  }

  async function enqueue(id: string, wait: number): Promise<RequestStatus> {
    return engine.submit({ type: 'enqueue', request: request(id), lease: LEASE, wait })
  }

  async function pass(milliseconds: number): Promise<void> {
    clock.advance(milliseconds)
    await tick()
  }

  async function granted(id: string): Promise<number> {
    const entered = enqueue(id, 0)
    const { least } = servers[0].questions[0]!.vote!
    for (const server of servers.slice(0, 2)) await server.next('enqueue').answer(held(least))
    expect(await entered).toEqual({ state: 'held', id, number: least })
    return least
  }

  test('a lease is longer on the servers, because their clocks may run faster', async () => {
    const number = await granted('r')
    void enqueue('q', 0)
    const leases = [servers[0].next('enqueue').operation]
    void engine.submit({ type: 'renew', request: request('r'), number, lease: LEASE })
    leases.push(servers[0].next('renew').operation)
    for (const { lease } of leases as readonly Renew[]) expect(lease).toBeGreaterThan(LEASE * 1.01)
  })

  test('a vote with a lesser number is raised before the grant is given', async () => {
    const entered = enqueue('r', 0)
    await servers[0].next('enqueue').answer(held(5000))
    const second = servers[1].next('enqueue')
    await second.answer(held(second.vote!.least))
    const raised = servers[1].next('renew')
    expect(raised.operation).toMatchObject({ number: second.vote!.least })
    expect(raised.vote).toMatchObject({ least: 5000 })
    let isGiven = false
    void entered.then(() => (isGiven = true))
    await tick()
    expect(isGiven).toBe(false)
    await raised.answer(true)
    expect(await entered).toEqual(held(5000))
  })

  test('two silent servers count as unreachable after a second', async () => {
    const entered = enqueue('r', 0)
    await servers[0].next('enqueue').answer(held(1))
    let isOpen = true
    entered.catch(() => (isOpen = false))
    await pass(20)
    await pass(999)
    expect(isOpen).toBe(true)
    await pass(1)
    await expect(entered).rejects.toThrow(UnavailableError)
    // The quorum cancels the vote that it got, and the votes that the silent servers may have given.
    servers[0].next('cancel')
    for (const server of servers.slice(1)) {
      server.next('enqueue')
      server.next('cancel')
    }
  })

  test('a server that has lost the request gets it again, at its old place', async () => {
    const entered = enqueue('r', 1000)
    const { order } = servers[0].questions[0]!.vote!
    for (const server of servers.slice(0, 2)) await server.next('enqueue').answer(QUEUED)
    await entered
    const polled = engine.submit({ type: 'checkIn', request: request('r'), lease: LEASE, wait: 1000 })
    polled.catch(() => undefined)
    await servers[0].next('checkIn').answer({ state: 'gone' })
    expect(servers[0].next('enqueue').vote).toMatchObject({ order })
  })

  test('a cancelled request is removed from a server that reported its loss before it answered', async () => {
    const entered = enqueue('r', 1000)
    const question = servers[0].next('enqueue')
    servers[0].hints.lost('r')
    const cancelled = engine.submit({ type: 'cancel', request: request('r') })
    expect(await entered).toEqual({ state: 'gone' })
    await question.answer(held(1))
    await servers[0].next('cancel').answer(undefined)
    servers[1].next('enqueue')
    await servers[1].next('cancel').answer(undefined)
    await cancelled
  })

  test('a request that has waited is removed from a server whenever that is back, because signs keep it there', async () => {
    const entered = enqueue('r', LEASE)
    for (const server of servers.slice(0, 2)) await server.next('enqueue').answer(QUEUED)
    await entered
    void engine.submit({ type: 'cancel', request: request('r') }).catch(() => undefined)
    const away = new UnavailableError('out of reach')
    await servers[0].next('cancel').answer(away)
    await servers[1].next('cancel').answer(undefined)
    for (const until = clock.now() + 2 * LEASE; clock.now() < until; await pass(100))
      if (servers[0].questions.length > 0) await servers[0].next('cancel').answer(away)
    await pass(HEARTBEAT_INTERVAL)
    await servers[0].next('cancel').answer(undefined)
    await pass(LEASE)
    expect(servers.flatMap(({ questions }) => questions)).toEqual([])
  })

  /** Makes requests wait at the first two servers. */
  async function waiting(...ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      const entered = enqueue(id, LEASE)
      for (const server of servers.slice(0, 2)) await server.next('enqueue').answer({ ...QUEUED, id })
      await entered
    }
  }

  function sign(...ids: readonly string[]): Promise<SignOutcome> {
    return engine.submit({ type: 'alive', session: 's', requests: ids.map(id => request(id)) })
  }

  test('a sign is sent to the servers where requests wait, and asks for those that any of them misses', async () => {
    await waiting('one', 'two')
    const signed = sign('one', 'two', 'unknown')
    const [first, second] = [servers[0].next('alive'), servers[1].next('alive')]
    expect(first.operation).toMatchObject({ requests: [{ id: 'one' }, { id: 'two' }] })
    await first.answer({ due: [], next: 1000 })
    await second.answer({ due: ['two'], next: 1040 })
    expect(servers[2].questions).toEqual([])
    const { due, next } = await signed
    expect([...due].sort()).toEqual(['two', 'unknown'])
    // Leases of one holder end at about the same time on all servers.
    expect(next).toBe(1040)
  })

  /** Makes a request hold the vote of the first server, and wait at the two others. */
  async function waitingWithVote(id: string): Promise<void> {
    const entered = enqueue(id, LEASE)
    await servers[0].next('enqueue').answer(held(1))
    for (const server of servers.slice(1)) await server.next('enqueue').answer(QUEUED)
    await entered
    // The quorum asks for a vote once more when it receives the messages of the server.
    await servers[0].next('checkIn').answer(held(1))
  }

  test('a sign waits for a majority of the servers, and not for a late one', async () => {
    await waitingWithVote('r')
    await waiting('other')
    const signed = sign('r', 'other')
    let isSigned = false
    void signed.then(() => (isSigned = true))
    // The quorum also checks the vote that it holds.
    servers[0].next('checkIn')
    await servers[0].next('alive').answer({ due: [], next: Infinity })
    await pass(20)
    expect(isSigned).toBe(false)
    await servers[1].next('alive').answer({ due: [], next: Infinity })
    expect(isSigned).toBe(true)
    expect(await signed).toEqual({ due: [], next: Infinity })
  })

  test('a request is due where too few servers keep it alive, so that it enters another queue', async () => {
    await waiting('r')
    const failed = sign('r')
    await servers[0].next('alive').answer({ due: [], next: Infinity })
    await servers[1].next('alive').answer(new UnavailableError('out of reach'))
    expect(await failed).toEqual({ due: ['r'], next: Infinity })
    const silent = sign('r')
    await servers[0].next('alive').answer({ due: [], next: Infinity })
    await pass(20)
    await pass(1000)
    expect(await silent).toEqual({ due: ['r'], next: Infinity })
  })

  test('a sign asks again for a vote that is held, which counts as a server that keeps the request', async () => {
    await waitingWithVote('r')
    const signed = sign('r')
    servers[0].next('checkIn')
    await servers[1].next('alive').answer({ due: [], next: Infinity })
    await servers[2].next('alive').answer(new UnavailableError('out of reach'))
    expect(await signed).toEqual({ due: [], next: Infinity })
  })

  test('a sign enters the queue of a usual server that was away', async () => {
    const entered = enqueue('r', LEASE)
    await servers[0].next('enqueue').answer(QUEUED)
    await servers[1].next('enqueue').answer(new UnavailableError('out of reach'))
    await servers[2].next('enqueue').answer(QUEUED)
    await entered
    await servers[1].next('enqueue').answer(new UnavailableError('out of reach'))
    void sign('r')
    servers[1].next('enqueue')
    for (const server of [servers[0], servers[2]]) server.next('alive')
  })

  test('messages that say a grant was taken away only make the box ask, and a majority decides', async () => {
    const number = await granted('r')
    await pass(5)
    await servers[2].next('enqueue').answer(held(9000))
    for (const server of servers) server.hints.lost('r')
    expect(lost).toEqual(['r', 'r', 'r'])
    const renew = (): Promise<boolean> =>
      engine.submit({ type: 'renew', request: request('r'), number, lease: LEASE })
    const kept = renew()
    for (const [place, server] of servers.entries()) await server.next('renew').answer(place > 0)
    expect(await kept).toBe(true)
    const gone = renew()
    for (const server of servers.slice(1)) await server.next('renew').answer(false)
    expect(await gone).toBe(false)
  })

  test('a downgrade names the exclusive claims, and later operations the shared ones', async () => {
    const number = await granted('r')
    const downgraded = engine.submit({ type: 'downgrade', request: request('r'), number })
    for (const server of servers.slice(0, 2)) {
      const question = server.next('downgrade')
      expect(question.operation.request.claims).toEqual([{ key: KEY, mode: 'exclusive' }])
      await question.answer(true)
    }
    expect(await downgraded).toBe(true)
    void engine.submit({ type: 'renew', request: request('r'), number, lease: LEASE })
    for (const [server, type] of [
      [servers[0], 'renew'],
      [servers[1], 'renew'],
      [servers[2], 'enqueue'],
    ] as const)
      expect(server.next(type).operation.request.claims).toEqual([{ key: KEY, mode: 'shared' }])
  })
})
