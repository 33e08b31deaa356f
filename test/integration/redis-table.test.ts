import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { VirtualClock } from '../../src/clock.js'
import { Decisions, type AnyEffect } from '../../src/engines/decisions.js'
import type { Operation, OutcomeOf, RequestReport, Standing } from '../../src/engines/engine.js'
import { MemoryState } from '../../src/engines/memory/state.js'
import { CallArguments, outcomeOf, reportsOf } from '../../src/engines/redis/call.js'
import { Names } from '../../src/engines/redis/names.js'
import { heldStrings } from '../../src/engines/redis/held-strings.js'
import { serverClock, tableScript } from '../../src/engines/redis/table-script.js'
import { claimSet, type Claim } from '../../src/locks/claim.js'
import type { Reply } from '../../src/engines/redis/clients/redis-link.js'
import { Random } from '../contract/random.js'
import { startRedis, type RedisServer } from '../servers/redis.js'

const SESSIONS = ['amy', 'ben', 'cat'] as const
type Session = (typeof SESSIONS)[number]
/** Lock keys, some of which begin alike or look like what stands in the queues. */
const LOCKS = ['a', 'b', 'b:0', '1:a', 'o\'\u{1f682}"\\ %']
const VALUES = ['s/x', 's/y', 's/z']
const WORLDS = 150
const STEPS = 80

/** The script with a clock that the test sets, and held keys that expire by it. */
const SCRIPT = tableScript({
  light: '',
  clock: `micros = call('GET', NUMBERS .. ':now') * 1000`,
  heldKeys: String.raw`
local function clear(key) call('DEL', key) end
local function left(key)
  local expires = call('HGET', key, 'expires')
  return expires and expires - now or -2
end
local function seen(key)
  if left(key) <= 0 then clear(key) end
  return call('HGET', key, 'text')
end
local function put(key, text, lease) call('HSET', key, 'text', text, 'expires', now + lease) end
local function expire(key, lease) call('HSET', key, 'expires', now + lease) end`,
})

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})

afterAll(async () => {
  await server.stop()
})

/** Numbers and versions of one side by those of the other: they come up in the same order on both. */
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

  of(one: number): number {
    return this.#other.get(one) ?? one
  }
}

/** The original in memory and the port in Redis, which are given the same operations at the same times. */
class World {
  readonly names: Names
  readonly numbers = new Counted()
  readonly versions = new Counted()
  readonly claims = new Map<string, readonly Claim[]>()
  /** The last number of each request, as the original has it. */
  readonly granted = new Map<string, number>()
  /** An enqueue that was carried out just now. */
  repeatable: Operation | undefined
  readonly requests = new Map<Session, string[]>(SESSIONS.map(session => [session, []]))
  readonly #state = new MemoryState(1000, new VirtualClock())
  readonly #effects: AnyEffect[] = []
  readonly #decisions: Decisions

  constructor(prefix: string) {
    this.names = new Names(prefix, false)
    for (const session of SESSIONS) this.#state.join({ session, host: 'host', pid: 1, label: undefined })
    this.#decisions = new Decisions(this.#state, effect => this.#effects.push(effect))
  }

  /** Carries an operation out on both sides and compares what comes of it. */
  async decide(session: Session, operation: Operation, now: number): Promise<void> {
    const outcome = this.#decisions.decide(operation, now)
    const hints = this.#effects
      .splice(0)
      .flatMap(effect => (effect.type === 'changed' ? [] : [`${effect.type} ${effect.id}`]))
    const [answer, told] = await this.#inRedis(session, this.#translated(operation), now)
    this.#compare(operation, outcome, answer)
    // A grant that nobody met has nobody to be told of its end by; its holder finds out by itself.
    const wakes = (all: readonly string[]): string[] => all.filter(hint => hint.startsWith('wake')).sort()
    expect(wakes(told)).toEqual(wakes(hints))
    for (const hint of told) {
      if (!hint.startsWith('lost ')) continue
      // Redis may find out earlier that something is over, but it has to be over.
      expect(now, hint).toBeGreaterThanOrEqual(this.#state.request(hint.slice('lost '.length))?.expires ?? 0)
    }
    this.#learn(session, operation, outcome)
    await this.#compareQueues(session, now)
  }

  #translated(operation: Operation): Operation {
    switch (operation.type) {
      case 'renew':
      case 'release':
      case 'pass':
      case 'downgrade':
        return { ...operation, number: this.numbers.of(operation.number) }
      case 'commit':
        return {
          ...operation,
          guard: operation.guard && { ...operation.guard, number: this.numbers.of(operation.guard.number) },
          expect: operation.expect.map(({ key, version }) => ({ key, version: this.versions.of(version) })),
        }
      default:
        return operation
    }
  }

  /** What the script answers, and the hints for all sessions. */
  async #inRedis(session: Session, operation: Operation, now: number): Promise<[unknown, string[]]> {
    const { numbers, queues, requests, channels } = this.names.group('')
    // All sessions are told in the answer when the script takes each for the own.
    const call = new CallArguments(
      this.names,
      [numbers, queues, requests],
      [session, channels, 'PUBLISH', '{}'],
    )
    const id =
      'id' in operation ? operation.id : operation.type === 'commit' ? operation.guard?.id : undefined
    const claims = operation.type === 'enqueue' ? operation.claims : this.claims.get(id ?? '')
    call.add({ operation, claims: claims ?? [{ key: 'a', mode: 'exclusive' }], details: '' })
    await server.command('SET', `${numbers}:now`, now)
    const script = SCRIPT.replace('if session == SESSION then', 'if session then')
    const answers = (await server.command(
      'EVAL',
      script,
      call.keys.length,
      ...call.keys,
      ...call.args,
    )) as Reply[]
    const hints = (answers[1] as string[]).filter(hint => !hint.startsWith('reserved'))
    if (operation.type === 'inspect') return [reportsOf(answers[0]!), hints]
    const outcome = outcomeOf(operation, answers[0]!)
    return [outcome, hints]
  }

  #compare(operation: Operation, outcome: unknown, answer: unknown): void {
    const plain = (value: unknown): unknown =>
      JSON.parse(
        JSON.stringify(value ?? null, (name, field: unknown) => (COUNTED.has(name) ? undefined : field)),
      )
    if (operation.type === 'inspect') return
    if (operation.type === 'commit' || operation.type === 'read') this.#matchVersions(outcome, answer)
    const standing = outcome as Standing
    if (operation.type === 'enqueue' || operation.type === 'claim' || operation.type === 'pass') {
      const other = answer as Standing
      expect(other.state).toBe(standing.state)
      if (standing.state === 'held' && other.state === 'held') {
        this.numbers.match(standing.number, other.number)
        if (standing.read) this.#matchVersions(standing.read, other.read)
      }
    }
    expect(plain(answer)).toEqual(plain(outcome))
  }

  #matchVersions(outcome: unknown, answer: unknown): void {
    const one = versionsIn(outcome)
    const other = versionsIn(answer)
    expect(other.length).toBe(one.length)
    for (const [index, version] of one.entries()) this.versions.match(version, other[index]!)
  }

  #learn(session: Session, operation: Operation, outcome: unknown): void {
    const { type } = operation
    this.repeatable = type === 'enqueue' ? operation : undefined
    if (type === 'downgrade' && outcome === true) {
      const claims = this.claims.get(operation.id)!
      this.claims.set(
        operation.id,
        claims.map(({ key }) => ({ key, mode: 'shared' })),
      )
    }
    if (type !== 'enqueue' && type !== 'claim' && type !== 'pass') return
    const standing = outcome as Standing
    if (standing.state !== 'held' && standing.state !== 'queued') return
    const own = this.requests.get(session)!
    if (!own.includes(standing.id)) own.push(standing.id)
    if (type === 'enqueue') this.claims.set(standing.id, operation.claims)
    if (type === 'pass' && standing.id === operation.next) {
      this.claims.set(standing.id, this.claims.get(operation.id)!)
    }
    if (standing.state === 'held') this.granted.set(standing.id, standing.number)
  }

  /** Whoever waits in one waits in the other, in the same order; what Redis knows of holders is true. */
  async #compareQueues(session: Session, now: number): Promise<void> {
    const outcome = this.#decisions.decide({ type: 'inspect', prefix: '' }, now)
    const [answer] = await this.#inRedis(session, { type: 'inspect', prefix: '' }, now)
    const inRedis = answer as readonly (RequestReport & { id: string })[]
    const line = (report: RequestReport): string =>
      `${report.key} ${report.phase} ${report.claim.mode} ${report.label ?? ''}`
    const queued = (reports: readonly RequestReport[]): string[] =>
      LOCKS.flatMap(key => reports.filter(report => report.key === key && report.phase !== 'held').map(line))
    expect(queued(inRedis)).toEqual(queued(outcome))
    const held = outcome.filter(({ phase }) => phase === 'held').map(line)
    for (const report of inRedis) if (report.phase === 'held') expect(held).toContain(line(report))
  }
}

const COUNTED: ReadonlySet<string> = new Set(['number', 'version', 'versions', 'behind', 'lookAgain'])

function versionsIn(value: unknown): number[] {
  if (Array.isArray(value)) return value.flatMap(versionsIn)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, field]) => {
    if (name === 'version') return [field as number]
    return name === 'versions' ? (field as number[]) : versionsIn(field)
  })
}

/** A random operation of a session on what there is. */
function operation(random: Random, world: World, session: Session, step: number, wide: boolean): Operation {
  const own = world.requests.get(session)!
  const id = own.at(-1 - random.below(Math.min(4, Math.max(1, own.length)))) ?? 'amy.none'
  const number = random.below(5) > 0 ? (world.granted.get(id) ?? 1) : 1
  const lease = [100, 1000, 30_000][random.below(3)]!
  const wait = [0, 50, 5000, Infinity, Infinity][random.below(5)]!
  const read =
    random.below(3) > 0 ? undefined : { keys: random.some(VALUES, 2), ids: [{ key: VALUES[0]!, id: 'one' }] }
  switch (random.below(14)) {
    case 0:
    case 1:
    case 2:
    case 3: {
      const keys = random.some(LOCKS, 1 + random.below(3))
      const several = keys.map(key => claim(random, key))
      const alone = !wide && several.every(({ mode }) => mode === 'exclusive')
      const { claims } = claimSet(alone ? several.slice(0, 1) : several)
      // Now and then one is sent again, as when its answer was lost.
      if (random.below(3) === 0 && world.repeatable) return world.repeatable
      return {
        type: 'enqueue',
        id: `${session}.${step}`,
        session,
        claims,
        lease,
        wait,
        label: undefined,
        read,
      }
    }
    case 4:
    case 5:
      return { type: 'claim', id, lease, wait: Math.max(wait, 1), read }
    case 6:
      return { type: 'cancel', id }
    case 7:
      return { type: 'renew', id, number, lease }
    case 8:
    case 9:
      return { type: 'release', id, number }
    case 10:
      return {
        type: 'pass',
        id,
        number,
        next: `${session}.${step}`,
        lease,
        wait: Math.max(wait, 1),
        label: undefined,
      }
    case 11:
      return random.below(3) === 0
        ? { type: 'downgrade', id, number }
        : { type: 'serve', keys: random.some(LOCKS, 2) }
    default: {
      const keys = random.some(VALUES, 2)
      const guard = random.below(2) === 0 ? undefined : { id, number }
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

describe('the script in Redis', () => {
  test(`decides as the lock table does, over ${WORLDS} random histories`, { timeout: 60_000 }, async () => {
    for (let seed = 1; seed <= WORLDS; seed++) {
      const random = new Random(seed)
      const world = new World(`${seed}:`)
      let now = 1000
      const history: string[] = []
      for (let step = 0; step < STEPS; step++) {
        const passes = [0, 0, 0, 5, 30, 400, 1200][random.below(7)]!
        if (passes > 0) world.repeatable = undefined
        now += passes
        const session = SESSIONS[random.below(SESSIONS.length)]!
        const next = operation(random, world, session, step, seed % 2 === 1)
        // Who met one key of a grant learns of its end there, and not at the others, as the original does.
        if (passes > 0 && seed % 2 === 1) await world.decide(session, { type: 'serve', keys: LOCKS }, now)
        history.push(`${now} ${session} ${JSON.stringify(next)}`)
        try {
          await world.decide(session, next, now)
        } catch (error) {
          throw new Error(`seed ${seed}, step ${step}:\n${history.join('\n')}\n${(error as Error).message}`, {
            cause: error,
          })
        }
      }
    }
  })

  test('does the same on its short way, many operations in one call', async () => {
    const light = new Calls('light:', tableScript())
    const table = new Calls('table:', tableScript({ heldKeys: heldStrings, clock: serverClock, light: '' }))
    const random = new Random(7)
    const ids: string[] = []
    for (let call = 0; call < 1500; call++) {
      const session = SESSIONS[random.below(SESSIONS.length)]!
      const batch = Array.from({ length: 1 + random.below(5) }, (_, index) => {
        const id = ids.at(-1 - random.below(Math.min(6, ids.length))) ?? 'amy.none'
        const kind = random.below(5)
        if (kind > 1) return { kind, id }
        const fresh = `${session}.${call}.${index}`
        ids.push(fresh)
        return { kind, id: fresh, key: LOCKS[random.below(LOCKS.length)]!, shared: random.below(6) === 0 }
      })
      const history = JSON.stringify(batch)
      expect(await light.run(session, batch), history).toEqual(await table.run(session, batch))
    }
  })
})

/** An operation by its kind, an enqueue with its key. */
interface Brief {
  readonly kind: number
  readonly id: string
  readonly key?: string
  readonly shared?: boolean
}

/** Calls of one script on keys of its own, by the server's own clock. */
class Calls {
  readonly #names: Names
  readonly #script: string
  readonly #claims = new Map<string, readonly Claim[]>()
  readonly #numbers = new Map<string, number>()
  #highest = 0

  constructor(prefix: string, script: string) {
    this.#names = new Names(prefix, false)
    this.#script = script
  }

  /** What became of each operation, without the numbers, which have to rise. */
  async run(session: Session, batch: readonly Brief[]): Promise<unknown[]> {
    const { numbers, queues, requests, channels } = this.#names.group('')
    const call = new CallArguments(
      this.#names,
      [numbers, queues, requests],
      [session, channels, 'PUBLISH', '{}'],
    )
    const operations = batch.map(brief => this.#operation(session, brief))
    for (const each of operations) {
      const { id } = each as { id: string }
      call.add({
        operation: each,
        claims: this.#claims.get(id) ?? [{ key: 'a', mode: 'exclusive' }],
        details: '',
      })
    }
    const answers = await server.command('EVAL', this.#script, call.keys.length, ...call.keys, ...call.args)
    const outcomes = operations.map((each, index) => outcomeOf(each, (answers as Reply[])[index]!))
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

  #operation(session: Session, { kind, id, key, shared }: Brief): Operation {
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
