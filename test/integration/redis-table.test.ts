import { afterAll, describe, expect, test } from 'vitest'
import type { LockRequest, Operation, RequestStatus, SignOutcome } from '../../src/engine/contract.js'
import { CallArguments } from '../../src/engines/redis/call.js'
import { outcomeOf, reportsOf } from '../../src/engines/redis/outcomes.js'
import { luaFile } from '../../src/engines/redis/lua/lua-file.js'
import type { Reply } from '../../src/engines/redis/clients/connection.js'
import { Names } from '../../src/engines/redis/names.js'
import { tableCode } from '../../src/engines/redis/lua/table-code.js'
import type { Claim } from '../../src/engine/claim.js'
import { Random } from '../../packages/conformance/src/random.js'
import { callerOf } from '../support/redis/caller.js'
import { LoadedCode } from '../support/redis/loaded-code.js'
import { LOCKS, SESSIONS, type Session } from '../support/table-world.js'
import { startRedis } from '../support/servers/redis.js'
import { lockRequest } from '../support/lock-request.js'

const server = await startRedis()

afterAll(() => server.stop())

describe('the code in Redis', () => {
  test('decides many operations of one call as one after another', { timeout: 60_000 }, async () => {
    // Records the messages to others in a list.
    const text = atSetTime(tableCode()).replaceAll('try(PUBLISH, ', "call('RPUSH', ")
    const together = new Crowd('together:', await LoadedCode.asFunction(server, text))
    const apart = new Crowd('apart:', await LoadedCode.asScript(server, text), 1)
    const random = new Random(11)
    let now = 1000
    for (let step = 0; step < 3000; step++) {
      if (random.below(3) === 0) now += random.below(random.below(5) === 0 ? 1600 : 30)
      // Signs of life expire after five seconds.
      if (random.below(60) === 0) now += random.below(9000)
      const session = SESSIONS[random.below(SESSIONS.length)]!
      const keys = LOCKS.slice(0, 3).filter(() => random.below(2) === 0)
      const batch = keys.flatMap(key => together.next(session, key, random))
      if (random.below(40) === 0) {
        const command = random.below(2) === 0 ? ['SET', 'foreign', 'NX'] : ['DEL']
        await together.outside(LOCKS[0]!, command)
        await apart.outside(LOCKS[0]!, command)
      }
      const history = `step ${step} at ${now}: ${JSON.stringify(batch)}`
      expect(await together.run(session, batch, now), history).toEqual(await apart.run(session, batch, now))
    }
    expect(together.seen).toEqual(new Set(['held', 'queued', 'busy', 'gone', 'true', 'false', 'kept']))
    expect(await together.told()).toEqual(await apart.told())
  })
})

test('a sign keeps what its requests need for as long as they keep their places', async () => {
  const crowd = new Crowd('kept:', await LoadedCode.asFunction(server, tableCode()))
  const request = (id: string) => lockRequest(id, [{ key: 'a', mode: 'exclusive' }])
  const lease = 60_000
  const sign: Operation = { type: 'alive', session: 'ben', requests: [request('ben.1')] }
  await crowd.execute('amy', [{ type: 'enqueue', request: request('amy.1'), lease, wait: 0 }])
  await crowd.execute('ben', [{ type: 'enqueue', request: request('ben.1'), lease, wait: Infinity }, sign])
  const { queues, requests, signs } = new Names('kept:', false).group('')
  for (const name of [queues, requests, signs]) await server.command('PEXPIRE', name, '5000')
  await crowd.execute('ben', [sign])
  for (const name of [queues, requests, signs])
    expect(Number(await server.command('PTTL', name)), name).toBeGreaterThan(lease - 5000)
})

test('a sign counts in the call that brings it, although that call has read the last one', async () => {
  const crowd = new Crowd('call:', await LoadedCode.asFunction(server, atSetTime(tableCode())))
  const enqueue = (id: string, mode: 'shared' | 'exclusive'): Operation => ({
    type: 'enqueue',
    request: lockRequest(id, [{ key: 'a', mode }]),
    lease: 60_000,
    wait: Infinity,
  })
  const sign: Operation = {
    type: 'alive',
    session: 'ben',
    requests: [lockRequest('ben.1', [{ key: 'a', mode: 'exclusive' }])],
  }
  await crowd.run('amy', [enqueue('amy.1', 'shared')], 1000)
  await crowd.run('ben', [enqueue('ben.1', 'exclusive'), sign], 1000)
  const seen = await crowd.run('ben', [{ type: 'sweepExpired', keys: ['a'] }, sign], 8000)
  expect(seen).toMatchObject({
    queues: [[{ id: 'amy.1' }, { id: 'ben.1', expiresIn: 5000 }], [], [], [], []],
  })
})

test('a sign has the first waiter behind a foreign holder check in, and no one behind it', async () => {
  const crowd = new Crowd('foreigner:', await LoadedCode.asFunction(server, tableCode()))
  await crowd.outside('a', ['SET', 'foreign', 'PX', '60000'])
  const requests = ['ben.1', 'ben.2'].map(id => lockRequest(id, [{ key: 'a', mode: 'exclusive' }]))
  for (const request of requests)
    await crowd.execute('ben', [{ type: 'enqueue', request, lease: 60_000, wait: Infinity }])
  const [sign] = await crowd.execute('ben', [{ type: 'alive', session: 'ben', requests }])
  expect(sign).toMatchObject({ due: ['ben.1'] })
})

test('a sign covers what can be read beside what another program has spoilt', async () => {
  const names = new Names('spoilt:', false)
  const crowd = new Crowd('spoilt:', await LoadedCode.asFunction(server, tableCode()))
  const lease = 60_000
  const keys = ['sound', 'list', 'record', 'ahead']
  const waiting = keys.map(key => lockRequest(`ben.${key}`, [{ key, mode: 'exclusive' }]))
  for (const { claims } of waiting) {
    const [key] = claims.map(claim => claim.key)
    for (const who of ['amy', 'ben'] as const)
      await crowd.execute(who, [
        { type: 'enqueue', request: lockRequest(`${who}.${key!}`, claims), lease, wait: Infinity },
      ])
  }
  await server.command('DEL', names.held('list'))
  await server.command('RPUSH', names.held('list'), 'a list')
  const { requests } = names.group('')
  await server.command('HSET', requests, 'ben.record', 'no record')
  await server.command('HSET', requests, 'amy.ahead', 'no record')
  const [sign] = await crowd.execute('ben', [{ type: 'alive', session: 'ben', requests: waiting }])
  expect(sign).toMatchObject({ due: ['ben.list', 'ben.record', 'ben.ahead'] })
  const { next } = sign as SignOutcome
  expect(next).toBeGreaterThan(lease - 10_000)
  expect(next).toBeLessThanOrEqual(lease)
})

test('a call knows nothing of the call before, although a function keeps its variables', async () => {
  const code = await LoadedCode.asFunction(server, atSetTime(tableCode()))
  const [one, other] = [new Crowd('one:', code), new Crowd('other:', code)]
  const claims: readonly Claim[] = [{ key: 'a', mode: 'exclusive' }]
  const enqueue = (id: string): Operation => ({
    ...{ type: 'enqueue', request: lockRequest(id, claims), lease: 60_000, wait: Infinity },
  })
  const sign: Operation = { type: 'alive', session: 'ben', requests: [lockRequest('ben.1', claims)] }
  for (const crowd of [one, other]) {
    await crowd.run('amy', [enqueue('amy.1')], 1000)
    await crowd.run('ben', [enqueue('ben.1'), sign], 1000)
  }
  await server.command('DEL', new Names('one:', false).group('').queues)
  await other.run('ben', [sign], 8000)
  // This call reads ben's last sign of life from one table.
  await one.run('amy', [], 8001)
  // In the other table, ben has a later sign of life, which this call must read.
  const release: Operation = { type: 'release', request: lockRequest('amy.1', claims), number: 0 }
  expect(await other.run('amy', [release], 8002)).toMatchObject({
    queues: [[{ id: 'ben.1', phase: 'reserved' }], [], [], [], []],
  })
})

/**
 * Returns code that reads the time in milliseconds from a key next to the counter. It checks no random sessions,
 * because two servers would check different ones.
 */
function atSetTime(code: string): string {
  const clock = /local time = call\('TIME'\)\s+stamp = .*/
  expect(code).toMatch(clock)
  return code
    .replace(clock, `stamp = call('GET', NUMBERS .. ':now') .. '000'`)
    .replaceAll(/call\('PTTL', REQUESTS\)/g, '1e15')
}

/** Code in which each key expires in the current millisecond: it exists, and has 0 ms left. */
const EXPIRING = luaFile('held-strings').replace("return call('PTTL', key)", 'return 0')

test('no request is granted together with a foreign holder in the millisecond in which its key expires', async () => {
  const code = await LoadedCode.asFunction(server, tableCode(EXPIRING))
  const names = new Names('expiring:', false)
  const claims: readonly Claim[] = [{ key: 'key', mode: 'exclusive' }]
  await server.command('SET', names.held('key'), 'foreign', 'PX', 60_000)
  const waiting = { request: lockRequest('amy.1', claims), lease: 1000, wait: Infinity }
  for (const type of ['enqueue', 'checkIn'] as const) {
    const operation = { ...waiting, type }
    const call = new CallArguments(names, names.group(''), callerOf('amy'))
    call.add(operation)
    const [answer] = await code.run(call)
    expect(outcomeOf(operation, answer!)).toMatchObject({ state: 'queued' })
  }
  expect(await server.command('GET', names.held('key'))).toBe('foreign')
})

/** Returns an outcome without the rest of a lease. */
function withoutLease(outcome: object): object {
  return Object.fromEntries(
    Object.entries(outcome).map(([name, value]) => [
      name,
      (name === 'checkInAfter' || name === 'next') && value > 100_000 && value < Infinity ? 'a lease' : value,
    ]),
  )
}

/** The request of one session for a key. */
interface Part {
  readonly request: LockRequest
  /** Number of its grant; 0 while it waits. */
  number: number
}

/** Sessions that request the same keys. Each crowd has its own code and its own prefix of keys. */
class Crowd {
  readonly #names: Names
  readonly #code: LoadedCode
  readonly #most: number
  readonly #parts = new Map<string, Part>()
  readonly #numbers = new Map<string, number>()
  #requests = 0
  #highest = 0
  /** All states, and kinds of replies, of its operations. */
  readonly seen = new Set<string>()

  /** @param most maximum number of operations in a call */
  constructor(prefix: string, code: LoadedCode, most = Infinity) {
    this.#names = new Names(prefix, false)
    this.#code = code
    this.#most = most
  }

  /** Returns possible next operations of a session on a key; now and then none. */
  next(session: Session, key: string, random: Random): Operation[] {
    const lease = 1_000_000
    const wait = [0, 300, Infinity, Infinity][random.below(4)]!
    const part = this.#parts.get(`${session} ${key}`)
    const fresh = `${session}.${++this.#requests}`
    if (!part) {
      const claims: Claim[] = [{ key, mode: random.below(12) === 0 ? 'shared' : 'exclusive' }]
      return [{ type: 'enqueue', request: lockRequest(fresh, claims), lease, wait }]
    }
    const { request, number } = part
    if (random.below(25) === 0) return [{ type: 'cancel', request }]
    if (number === 0) {
      if (random.below(4) === 0) return [{ type: 'alive', session, requests: [request] }]
      return random.below(3) > 0 ? [{ type: 'checkIn', request, lease, wait: wait || 300 }] : []
    }
    switch (random.below(5)) {
      case 0:
        return [{ type: 'release', request, number }]
      case 1:
        return [{ type: 'renew', request, number, lease }]
      case 2:
        return []
      default: {
        const next = lockRequest(fresh, request.claims)
        return [{ type: 'extendOrYield', request, number, next, lease, wait: wait || 300 }]
      }
    }
  }

  /** Executes a command of another program on the held key. */
  async outside(key: string, [name, ...rest]: readonly string[]): Promise<void> {
    await server.command(name!, this.#names.held(key), ...rest)
  }

  /**
   * Returns the outcomes of the operations, the messages to the session, and all holders and waiters afterwards. The
   * result contains no numbers of grants, but checks that they increase.
   */
  async run(session: Session, batch: readonly Operation[], now: number): Promise<unknown> {
    const set = server.command('SET', `${this.#names.group('').numbers}:now`, now)
    const own = batch.map(operation =>
      'number' in operation && 'request' in operation
        ? { ...operation, number: this.#numbers.get(operation.request.id)! }
        : operation,
    )
    const outcomes = await this.execute(session, own, { type: 'inspect', prefix: '' })
    await set
    const [reports, hints] = outcomes.splice(batch.length) as [Reply, Reply]
    for (const [index, operation] of own.entries()) this.#learn(session, operation, outcomes[index])
    return {
      // Omits leases, because the server's own clock measures the lifetime of a held key.
      outcomes: outcomes.map(outcome =>
        typeof outcome === 'object' ? { ...withoutLease(outcome as object), number: undefined } : outcome,
      ),
      hints,
      queues: LOCKS.map(key =>
        reportsOf(reports)
          .filter(report => report.key === key)
          .map(({ id, claim, phase, details, age, expiresIn }) => ({
            ...{ id, claim, phase, details, age },
            expiresIn: phase === 'held' ? undefined : expiresIn,
          })),
      ),
    }
  }

  /** @param last another operation at the end, whose raw reply is returned together with the hints */
  async execute(session: Session, batch: readonly Operation[], last?: Operation): Promise<unknown[]> {
    const operations = last ? [...batch, last] : batch
    const answers: Reply[] = []
    const hints: Reply[] = []
    for (let from = 0; from < operations.length; from += this.#most) {
      const call = new CallArguments(this.#names, this.#names.group(''), callerOf(session))
      for (const operation of operations.slice(from, from + this.#most)) call.add(operation)
      const reply = await this.#code.run(call)
      answers.push(...reply.slice(0, -1))
      hints.push(...(reply.at(-1) as readonly Reply[]))
    }
    return [
      ...batch.map((operation, index) => outcomeOf(operation, answers[index]!)),
      ...(last ? [answers.at(-1), hints] : []),
    ]
  }

  /** Returns the messages to each session. */
  async told(): Promise<unknown[]> {
    const { channels } = this.#names.group('')
    return Promise.all(SESSIONS.map(session => server.command('LRANGE', channels + session, 0, -1)))
  }

  #learn(session: Session, operation: Operation, outcome: unknown): void {
    if (!('request' in operation)) return
    const { request } = operation
    const place = `${session} ${request.claims[0]!.key}`
    if (operation.type === 'renew') return
    if (operation.type === 'cancel' || operation.type === 'release') {
      this.seen.add(outcome === false ? 'false' : 'true')
      this.#parts.delete(place)
      return
    }
    const status = outcome as RequestStatus
    this.seen.add(status.state)
    if (status.state !== 'held' && status.state !== 'queued') return void this.#parts.delete(place)
    if (operation.type === 'extendOrYield' && status.id === request.id) this.seen.add('kept')
    if (status.state === 'held' && this.#numbers.get(status.id) !== status.number) {
      expect(status.number).toBeGreaterThan(this.#highest)
      this.#highest = status.number
      this.#numbers.set(status.id, status.number)
    }
    const its = operation.type === 'extendOrYield' && status.id !== request.id ? operation.next : request
    this.#parts.set(place, { request: its, number: status.state === 'held' ? status.number : 0 })
  }
}
