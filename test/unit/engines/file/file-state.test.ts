import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/base/clock.js'
import { StateMachine, type AnyEffect } from '../../../../src/engine/state-machine.js'
import type {
  Enqueue,
  Operation,
  ReadOutcome,
  ReadSet,
  RequestStatus,
} from '../../../../src/engine/contract.js'
import { loadSqlite, type Connection, type Sqlite } from '../../../../src/engines/file/driver.js'
import { FileState } from '../../../../src/engines/file/file-state.js'
import { SCHEMA } from '../../../../src/engines/file/schema.js'
import { MemoryState } from '../../../../src/engine/kit/memory-state.js'
import { claimSet } from '../../../../src/core/claims.js'
import type { Claim } from '../../../../src/engine/claim.js'
import { lockRequest } from '../../../support/lock-request.js'

/** The first number on both sides. */
const START = 1000
const SESSIONS = ['amy', 'ben', 'cat'] as const
/** Lock keys, including some that objects, SQL and JSON treat specially. */
const LOCKS = ['a', '__proto__', '7', `o'\u{1f682}"\\`]
const VALUES = ['s/x', 's/y', 's/z', 's/__proto__', 's/1']
const IDS = ['one', 'two']

type Session = (typeof SESSIONS)[number]

/** An operation of one session. It names requests and grants by their positions among the earlier ones. */
interface Step {
  readonly session: Session
  readonly kind: (typeof KINDS)[number]
  readonly claims: readonly Claim[]
  readonly lease: number
  readonly wait: number
  /** Whether a commit releases its guard. */
  readonly releases: boolean
  readonly label: string | undefined
  /** Selects one of the session's requests, or one of all grants. */
  readonly which: number
  /** Whether the operation names the right number. */
  readonly right: boolean
  readonly read: ReadSet
  readonly writes: readonly { key: string; value: string | undefined }[]
  readonly id: string | undefined
  readonly other: Session
  /** Time that passes before the operation, in milliseconds. */
  readonly passes: number
  /** Whether this is the first operation of a new transaction. */
  readonly transaction: boolean
  /** Whether the transaction is first rolled back, and then repeated. */
  readonly rollsBack: boolean
  readonly forgets: boolean
}

const KINDS = [
  'enqueue',
  'enqueue',
  'enqueue',
  'enqueue',
  'enqueue',
  'enqueue',
  'checkIn',
  'checkIn',
  'checkIn',
  'alive',
  'alive',
  'cancel',
  'renew',
  'release',
  'release',
  'release',
  'extendOrYield',
  'extendOrYield',
  'downgrade',
  'forceRelease',
  'revoke',
  'sweepExpired',
  'inspect',
  'read',
  'commit',
  'commit',
  'commit',
  'watch',
  'unwatch',
] as const

const claim = fc.oneof(
  fc.record({ key: fc.constantFrom(...LOCKS), mode: fc.constant('exclusive' as const) }),
  fc.record({ key: fc.constantFrom(...LOCKS), mode: fc.constant('shared' as const) }),
  fc.record({
    key: fc.constantFrom('permits', ...LOCKS),
    mode: fc.constant('permits' as const),
    permits: fc.integer({ min: 1, max: 3 }),
    max: fc.constantFrom(3, 3, 3, 4),
  }),
)
// The engine keeps requests for one key and for several keys in different tables.
const claims = fc.oneof(
  // Makes some queues long.
  fc.tuple(fc.constant({ key: LOCKS[0]!, mode: 'exclusive' as const })),
  fc.tuple(claim),
  fc.uniqueArray(claim, { minLength: 1, maxLength: 5, selector: one => one.key }),
)
const readSet = fc.record({
  keys: fc.uniqueArray(fc.constantFrom(...VALUES), { maxLength: 5 }),
  ids: fc.array(fc.record({ key: fc.constantFrom(...VALUES), id: fc.constantFrom(...IDS) }), {
    maxLength: 2,
  }),
})
const write = fc.record({
  key: fc.constantFrom(...VALUES),
  value: fc.option(fc.json({ maxDepth: 2 }), { nil: undefined }),
})

const mostly = fc.constantFrom(true, true, true, false)

const step: fc.Arbitrary<Step> = fc.record({
  session: fc.constantFrom(...SESSIONS),
  kind: fc.constantFrom(...KINDS),
  claims,
  lease: fc.constantFrom(100, 1000.5, 30_000),
  wait: fc.constantFrom(0, 40, 2000.5, Infinity, Infinity),
  releases: mostly,
  label: fc.constantFrom(undefined, 'night', 'naïve "one"'),
  which: fc.nat(30),
  right: mostly,
  read: readSet,
  writes: fc.uniqueArray(write, { maxLength: 5, selector: one => one.key }),
  id: fc.constantFrom(undefined, ...IDS),
  other: fc.constantFrom(...SESSIONS),
  passes: fc.constantFrom(0, 0, 0, 0, 0.25, 5, 5, 30, 30, 400, 1200, 5200),
  transaction: fc.boolean(),
  rollsBack: fc.integer({ min: 0, max: 7 }).map(one => one === 0),
  forgets: fc.integer({ min: 0, max: 7 }).map(one => one === 0),
})

/** The outcome of an operation, and the notifications for other sessions. */
interface Decided {
  readonly outcome: unknown
  readonly effects: readonly unknown[]
}

/**
 * One of the two compared sides. Each side has its own numbers and versions, so they are compared by the order of their
 * first appearance.
 */
abstract class Side {
  /** By request: the number of its last grant. */
  readonly numbers = new Map<string, number>()
  readonly #known = { number: [] as number[], version: [] as number[] }

  abstract decide(session: Session, operation: Operation, now: number): Decided

  version(session: Session, key: string, now: number): number {
    const { outcome } = this.decide(session, { type: 'read', keys: [key], ids: [] }, now)
    return (outcome as ReadOutcome).values[0]!.version
  }

  /** Returns an answer in a form that can be compared. Checks that new numbers are greater than all earlier ones. */
  comparable({ outcome, effects }: Decided): Decided {
    const plain = this.#renumbered(outcome)
    return {
      outcome: Array.isArray(plain) ? byKey(plain as { key: string }[]) : plain,
      // Hints have no order.
      effects: effects.map(effect => JSON.stringify(effect)).sort(),
    }
  }

  #renumbered(value: unknown, field = ''): unknown {
    if (Array.isArray(value)) return value.map(one => this.#renumbered(one, field))
    if (typeof value === 'object' && value !== null) {
      return Object.fromEntries(
        Object.entries(value).map(([name, one]) => [name, this.#renumbered(one, name)]),
      )
    }
    const counted = COUNTED[field]
    if (typeof value !== 'number' || value === 0 || counted === undefined) return value
    const known = this.#known[counted]
    let place = known.indexOf(value)
    if (place < 0) {
      expect(value, field).toBeGreaterThan(known.at(-1) ?? 0)
      place = known.push(value) - 1
    }
    return `${counted} ${place}`
  }
}

/** The fields with a number or a version. */
const COUNTED: Readonly<Record<string, 'number' | 'version'>> = {
  number: 'number',
  version: 'version',
  versions: 'version',
}

/** Groups reports by key. The keys of a report have no order, but the entries of one key have. */
function byKey(reports: readonly { key: string }[]): Map<string, unknown[]> {
  const found = new Map<string, unknown[]>()
  for (const report of reports) found.set(report.key, [...(found.get(report.key) ?? []), report])
  return found
}

class MemorySide extends Side {
  readonly #effects: AnyEffect[] = []
  readonly #decisions: StateMachine

  constructor() {
    super()
    const state = new MemoryState(START, new VirtualClock())
    for (const session of SESSIONS) state.join(member(session))
    this.#decisions = new StateMachine(state, effect => this.#effects.push(effect))
  }

  decide(_session: Session, operation: Operation, now: number): Decided {
    const outcome = this.#decisions.decide(operation, now)
    return { outcome, effects: this.#effects.splice(0) }
  }
}

/** The file engine. Each session has its own connection, like a process. */
class FileSide extends Side {
  readonly #boxes = new Map<Session, FileBox>()
  readonly #connections: Connection[]
  #open: FileBox | undefined

  constructor(connections: readonly Connection[]) {
    super()
    this.#connections = [...connections]
    const [first] = connections as [Connection]
    first.exec(`
      begin immediate; delete from queues; delete from tails; delete from requests; delete from claims; delete from sessions; delete from entries;
      delete from ids; delete from watches; delete from machine;
      insert into machine values ('boot', 'namespace', ${START}); insert into queues values ('', '${START}', 0)`)
    SESSIONS.forEach((session, index) => {
      const box = new FileBox(connections[index]!)
      this.#boxes.set(session, box)
    })
    first.exec('commit')
    for (const session of SESSIONS) {
      this.#within(session)
      this.#boxes.get(session)!.state.join({ ...member(session), address: `${session}.box` })
      this.end()
    }
  }

  /** Commits the open transaction, if there is one. */
  end(): void {
    this.#open?.connection.exec('commit')
    this.#open = undefined
  }

  /** Rolls back the transaction that a failure left open. */
  abandon(): void {
    this.#open?.connection.exec('rollback')
    this.#open = undefined
  }

  forget(session: Session): void {
    this.#boxes.get(session)!.state.forget()
  }

  /** Executes an operation alone in a transaction, and rolls it back. */
  tryOut(session: Session, operation: Operation, now: number): void {
    this.end()
    const box = this.#within(session)
    box.decide(operation, now)
    this.abandon()
    box.state.forget()
  }

  decide(session: Session, operation: Operation, now: number): Decided {
    return this.#within(session).decide(operation, now)
  }

  /** Counts the rows of locks and IDs in the database. */
  rows(): { queues: number; tails: number; requests: number; ids: number } {
    this.end()
    const count = (table: string): number =>
      this.#connections[0]!.prepare(`select count(*) as rows from ${table}`).get()![0] as number
    return {
      queues: count('queues'),
      tails: count('tails'),
      requests: count('requests'),
      ids: count('ids'),
    }
  }

  #within(session: Session): FileBox {
    const box = this.#boxes.get(session)!
    if (this.#open === box) return box
    this.end()
    expect(box.connection.begin()).toBe(true)
    return (this.#open = box)
  }
}

class FileBox {
  readonly state: FileState
  readonly #decisions: StateMachine
  #effects: AnyEffect[] = []

  constructor(readonly connection: Connection) {
    // With rows of 2 requests, most queues of this test are long enough to have a tail.
    this.state = new FileState(connection, 2)
    this.#decisions = new StateMachine(this.state, effect => this.#effects.push(effect))
  }

  decide(operation: Operation, now: number): Decided {
    this.#effects = []
    const outcome = this.state.change(() => this.#decisions.decide(operation, now), operation)
    return { outcome, effects: this.#effects }
  }
}

function member(session: Session) {
  return { session, host: `host of ${session}`, pid: session.length, label: undefined }
}

/** The requests and grants that later operations can name. */
class Script {
  readonly #requests = new Map<Session, string[]>(SESSIONS.map(session => [session, []]))
  readonly #claims = new Map<string, readonly Claim[]>()
  #repeatable: Enqueue | undefined
  #count = 0

  /** Returns the operation of a step for each side. */
  operations(step: Step, sides: readonly Side[], now: number): Operation[] {
    const { session, kind, lease, label } = step
    const own = this.#requests.get(session)!
    const id = own.at(-1 - (step.which % Math.max(own.length, 1))) ?? 'none'
    const request = lockRequest(id, this.#claims.get(id) ?? [])
    const next = `${session}.${++this.#count}`
    const set = claimSet(step.claims).claims
    const held = [...sides[0]!.numbers.keys()]
    const granted = held[step.which % Math.max(held.length, 1)] ?? 'none'
    return sides.map((side): Operation => {
      const number = step.right ? (side.numbers.get(id) ?? 1) : 1
      switch (kind) {
        case 'enqueue': {
          // Sometimes sends the operation before again, as after a lost answer.
          const repeated = step.which % 4 === 0 && step.passes < 100 ? this.#repeatable : undefined
          if (repeated?.request.session === session) return repeated
          if (step.which % 5 === 1) {
            const keys = set.slice(step.right ? -1 : 0).map(({ key }): Claim => ({ key, mode: 'exclusive' }))
            return {
              type: kind,
              request: lockRequest(next, keys, label),
              lease,
              wait: step.wait,
              steal: true,
            }
          }
          const read = step.right ? step.read : undefined
          return { type: kind, request: lockRequest(next, set, label), lease, wait: step.wait, read }
        }
        case 'checkIn':
          return { type: kind, request, lease, wait: step.wait + 1, read: step.right ? step.read : undefined }
        case 'alive': {
          const ids = own.slice(step.which % 3)
          return {
            type: kind,
            session,
            requests: ids.map(one => lockRequest(one, this.#claims.get(one) ?? [])),
          }
        }
        case 'cancel':
          return { type: kind, request }
        case 'renew':
          return { type: kind, request, number, lease }
        case 'release':
        case 'downgrade':
          return { type: kind, request, number }
        case 'extendOrYield': {
          const other = lockRequest(next, request.claims, label)
          return { type: kind, request, number, next: other, lease, wait: step.wait + 1 }
        }
        case 'forceRelease': {
          const its = side.numbers.get(granted) ?? 1
          return { type: kind, key: this.#claims.get(granted)?.[0]!.key ?? 'a', number: its }
        }
        case 'revoke':
          return { type: kind, session: step.other }
        case 'sweepExpired':
          return { type: kind, keys: set.map(({ key }) => key) }
        case 'inspect':
          return { type: kind, prefix: step.right ? '' : '_' }
        case 'read':
          return { type: kind, ...step.read }
        case 'commit': {
          const { writes } = step
          const expect = step.read.keys
            .slice(0, 2)
            .map(key => ({ key, version: step.right ? side.version(session, key, now) : 1 }))
          const guard = step.which > 15 ? undefined : { request, number: side.numbers.get(id) ?? 1 }
          const record = step.id === undefined ? [] : [{ key: VALUES[0]!, id: step.id }]
          return { type: kind, guard, expect, writes, record, retention: 1000, release: step.releases }
        }
        case 'watch':
        case 'unwatch':
          return { type: kind, session, key: VALUES[step.which % VALUES.length]! }
      }
    })
  }

  /** Records the outcome, because most later operations name requests that are in a queue. */
  learn({ session }: Step, operation: Operation, outcomes: readonly unknown[], sides: readonly Side[]): void {
    const { type } = operation
    this.#repeatable = undefined
    if (type === 'enqueue') this.#claims.set(operation.request.id, operation.request.claims)
    if (type === 'extendOrYield') this.#claims.set(operation.next.id, operation.next.claims)
    if (type !== 'enqueue' && type !== 'checkIn' && type !== 'extendOrYield') return
    const own = this.#requests.get(session)!
    outcomes.forEach((outcome, index) => {
      const standing = outcome as RequestStatus
      if (standing.state === 'held') sides[index]!.numbers.set(standing.id, standing.number)
    })
    const standing = outcomes[0] as RequestStatus
    if (standing.state === 'held' || standing.state === 'queued') {
      if (!own.includes(standing.id)) own.push(standing.id)
      if (type === 'enqueue') this.#repeatable = operation
    } else if (own.length > 2 && own.includes(operation.request.id)) {
      // A request that is gone stays for a while, because operations on it must be rejected.
      own.splice(own.indexOf(operation.request.id), 1)
    }
  }
}

let folder: string
let sqlite: Sqlite
let connections: Connection[]

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-state-'))
  sqlite = await loadSqlite()
  connections = SESSIONS.map(() => sqlite.open(join(folder, 'state.db')))
  connections[0]!.exec('pragma journal_mode=wal')
  connections[0]!.exec(SCHEMA)
  for (const connection of connections) connection.exec('pragma synchronous=off')
})

afterAll(() => {
  for (const connection of connections) connection.close()
  rmSync(folder, { recursive: true })
})

/** Runs the steps on both sides, and compares them after each step. */
function compare(steps: readonly Step[]): void {
  const memory = new MemorySide()
  const file = new FileSide(connections)
  const sides = [memory, file] as const
  const script = new Script()
  let now = 100.5
  try {
    for (const step of steps) {
      const { session } = step
      now += step.passes
      if (step.transaction) file.end()
      const [here, there] = script.operations(step, sides, now) as [Operation, Operation]
      if (step.rollsBack) file.tryOut(session, there, now)
      if (step.forgets) file.forget(session)
      const decided = [memory.decide(session, here, now), file.decide(session, there, now)] as const
      expect(file.comparable(decided[1]), step.kind).toEqual(memory.comparable(decided[0]))
      script.learn(
        step,
        here,
        decided.map(({ outcome }) => outcome),
        sides,
      )
      const look: Operation = { type: 'inspect', prefix: '' }
      const [left, right] = sides.map(side => side.comparable(side.decide(session, look, now)))
      expect(right, `after ${step.kind}`).toEqual(left)
    }
    now += 100_000
    // Everything has expired. Dropping it leaves nothing but the counter.
    const all: Operation = { type: 'sweepExpired', keys: ['permits', ...LOCKS] }
    for (const side of sides) side.decide('amy', all, now)
    expect(file.rows()).toMatchObject({ queues: 1, tails: 0, requests: 0 })
  } finally {
    file.abandon()
  }
}

test('the state in a database decides as the state in variables does', { timeout: 60_000 }, () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 60, size: 'max' }), steps => compare(steps)),
    { numRuns: 200 },
  )
})
