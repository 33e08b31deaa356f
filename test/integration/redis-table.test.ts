import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Operation, Standing } from '../../src/engines/engine.js'
import { CallArguments, outcomeOf } from '../../src/engines/redis/call.js'
import { heldStrings } from '../../src/engines/redis/held-strings.js'
import { Names } from '../../src/engines/redis/names.js'
import { serverClock, tableScript } from '../../src/engines/redis/table-script.js'
import type { Claim } from '../../src/locks/claim.js'
import { Random } from '../../src/conformance/random.js'
import { LoadedScript } from '../redis/loaded-script.js'
import { compareHistories } from '../redis/table-histories.js'
import { LOCKS, SESSIONS, setClock, type Session } from '../redis/table-world.js'
import { startRedis, type RedisServer } from '../servers/redis.js'

const WORLDS = 150

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})

afterAll(async () => {
  await server.stop()
})

describe('the script in Redis', () => {
  test(`decides as the lock table does, over ${WORLDS} random histories`, { timeout: 60_000 }, async () => {
    await compareHistories(server, 1, WORLDS)
  })

  test('does the same on its short way, many operations in one call', async () => {
    const load = (text: string) => LoadedScript.load(server, text.replaceAll(serverClock, setClock))
    const whole = tableScript({ heldKeys: heldStrings, clock: serverClock, light: '' })
    const light = new Calls('light:', await load(tableScript()))
    const table = new Calls('table:', await load(whole))
    let now = 1000
    const random = new Random(7)
    const ids: string[] = []
    for (let call = 0; call < 1500; call++) {
      now += random.below(3) === 0 ? random.below(500) : 0
      const session = SESSIONS[random.below(SESSIONS.length)]!
      const batch = Array.from({ length: 1 + random.below(5) }, (_, index) => {
        const id = ids.at(-1 - random.below(Math.min(6, ids.length))) ?? 'amy.none'
        const kind = random.below(6)
        if (kind > 1 && kind < 5) return { kind, id }
        const fresh = `${session}.${call}.${index}`
        ids.push(fresh)
        if (kind === 5) return { kind, id, next: fresh }
        return { kind, id: fresh, key: LOCKS[random.below(LOCKS.length)]!, shared: random.below(6) === 0 }
      })
      const history = JSON.stringify(batch)
      expect(await light.run(session, batch, now), history).toEqual(await table.run(session, batch, now))
    }
  })
})

/** Keys in the very millisecond in which they expire: 0 are left, and they are there. */
const EXPIRING = heldStrings.replace("return call('PTTL', key)", 'return 0')

test('nobody is let in beside a foreign holder in the millisecond in which its key expires', async () => {
  const script = await LoadedScript.load(
    server,
    tableScript({ heldKeys: EXPIRING, clock: serverClock, light: '' }),
  )
  const names = new Names('expiring:', false)
  const claims: readonly Claim[] = [{ key: 'key', mode: 'exclusive' }]
  await server.command('SET', names.held('key'), 'foreign', 'PX', 60_000)
  const waiting = { id: 'amy.1', lease: 1000, wait: Infinity }
  const enqueue: Operation = { ...waiting, type: 'enqueue', session: 'amy', claims, label: undefined }
  for (const operation of [enqueue, { ...waiting, type: 'claim' } as const]) {
    const call = new CallArguments(names, names.group(''), { session: 'amy', memberText: '{}' }, 1)
    call.add({ operation, claims, details: '' })
    const [answer] = await script.run(call)
    expect(outcomeOf(operation, answer!)).toMatchObject({ state: 'queued' })
  }
  expect(await server.command('GET', names.held('key'))).toBe('foreign')
})

/** An operation by its kind, an enqueue with its key, a pass with the id that comes after. */
interface Brief {
  readonly kind: number
  readonly id: string
  readonly next?: string
  readonly key?: string
  readonly shared?: boolean
}

/** Calls of one script on keys of its own. */
class Calls {
  readonly #names: Names
  readonly #script: LoadedScript
  readonly #claims = new Map<string, readonly Claim[]>()
  readonly #numbers = new Map<string, number>()
  #highest = 0

  constructor(prefix: string, script: LoadedScript) {
    this.#names = new Names(prefix, false)
    this.#script = script
  }

  /** What became of each operation, without the numbers, which have to rise. */
  async run(session: Session, batch: readonly Brief[], now: number): Promise<unknown[]> {
    const group = this.#names.group('')
    const call = new CallArguments(this.#names, group, { session, memberText: '{}' }, batch.length)
    const operations = batch.map(brief => this.#operation(session, brief))
    for (const each of operations) {
      const { id } = each as { id: string }
      call.add({
        operation: each,
        claims: this.#claims.get(id) ?? [{ key: 'a', mode: 'exclusive' }],
        details: '',
      })
    }
    const set = server.command('SET', `${group.numbers}:now`, now)
    const answers = await this.#script.run(call)
    await set
    const outcomes = operations.map((each, index) => outcomeOf(each, answers[index]!))
    for (const outcome of outcomes) {
      const standing = outcome as Standing | undefined
      if (typeof standing !== 'object' || standing.state !== 'held') continue
      if (this.#numbers.get(standing.id) !== standing.number)
        expect(standing.number).toBeGreaterThan(this.#highest)
      this.#highest = Math.max(this.#highest, standing.number)
      this.#numbers.set(standing.id, standing.number)
    }
    return outcomes.map(outcome =>
      typeof outcome === 'object' ? { ...outcome, number: undefined, lookAgain: undefined } : outcome,
    )
  }

  #operation(session: Session, { kind, id, next, key, shared }: Brief): Operation {
    const number = this.#numbers.get(id) ?? 1
    const lease = 1_000_000
    if (key !== undefined) {
      const claims: Claim[] = [{ key, mode: shared ? 'shared' : 'exclusive' }]
      this.#claims.set(id, claims)
      return {
        type: 'enqueue',
        id,
        session,
        claims,
        lease,
        wait: kind === 0 ? 0 : Infinity,
        label: undefined,
      }
    }
    if (next !== undefined) {
      const claims = this.#claims.get(id)
      if (claims) this.#claims.set(next, claims)
      return { type: 'pass', id, number, next, lease, wait: Infinity, label: undefined }
    }
    switch (kind) {
      case 2:
        return { type: 'renew', id, number, lease }
      case 3:
        return { type: 'cancel', id }
      default:
        return { type: 'release', id, number }
    }
  }
}
