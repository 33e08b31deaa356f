import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { StateMachine, type AnyEffect } from '../../../../src/engine/state-machine.js'
import type { Operation } from '../../../../src/engine/contract.js'
import { loadSqlite, type Connection } from '../../../../src/engines/file/driver.js'
import { FileState } from '../../../../src/engines/file/file-state.js'
import { SCHEMA } from '../../../../src/engines/file/schema.js'
import { Random } from '../../../../packages/conformance/src/random.js'
import {
  inOrder,
  type SentHint,
  type StoredRequest,
  type StoredTable,
} from '../../../support/stored-table.js'
import { compareHistories, type HistoryKind } from '../../../support/table-histories.js'
import { LOCKS, SESSIONS, type Answered, type TablePort } from '../../../support/table-world.js'

/** With rows of 2 requests, most queues of this test are long enough to have a tail. */
const ROW_SIZE = 2

let folder: string
let connections: Connection[]

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-state-'))
  const sqlite = await loadSqlite()
  connections = SESSIONS.map(() => sqlite.open(join(folder, 'state.db')))
  connections[0]!.exec('pragma journal_mode=wal')
  connections[0]!.exec(SCHEMA)
  for (const connection of connections) connection.exec('pragma synchronous=off')
})

afterAll(() => {
  for (const connection of connections) connection.close()
  rmSync(folder, { recursive: true })
})

/** One box with a connection of its own, like a process. */
class FileBox {
  readonly state: FileState
  readonly #decisions: StateMachine
  readonly #effects: AnyEffect[] = []

  constructor(readonly connection: Connection) {
    this.state = new FileState(connection, ROW_SIZE)
    this.#decisions = new StateMachine(this.state, effect => this.#effects.push(effect))
  }

  decide(operation: Operation, now: number): Answered {
    const answer = this.state.change(() => this.#decisions.decide(operation, now), operation)
    const hints = this.#effects
      .splice(0)
      .flatMap((effect): SentHint[] => (effect.type === 'changed' ? [] : [effect]))
    return { answer, hints, stored: storedIn(this.state) }
  }
}

/**
 * The lock table in a database, with a box for each session. Some transactions have several operations of one box, and
 * some are rolled back and repeated.
 */
class FileTablePort implements TablePort {
  readonly differences = { canSteal: true, canRevoke: true }
  readonly #random: Random
  readonly #boxes: ReadonlyMap<string, FileBox>
  #open: FileBox | undefined
  #now = 0

  constructor(seed: number) {
    this.#random = new Random(seed)
    const [first] = connections as [Connection]
    const tables = [
      'queues',
      'tails',
      'requests',
      'claims',
      'sessions',
      'entries',
      'ids',
      'watches',
      'signs',
      'machine',
    ]
    first.exec(`
      begin immediate; ${tables.map(table => `delete from ${table}`).join('; ')};
      insert into machine values ('boot', 'namespace', 1000); insert into queues values ('', '1000', 0); commit`)
    this.#boxes = new Map(SESSIONS.map((session, index) => [session, new FileBox(connections[index]!)]))
    for (const [session, { state }] of this.#boxes) {
      this.#within(session)
      state.join({ session, host: 'host', pid: 1, label: undefined, address: `${session}.box` })
    }
  }

  async decide(session: string, operation: Operation, now: number): Promise<Answered> {
    this.#now = now
    if (this.#random.below(2) === 0) this.#commit()
    if (this.#random.below(8) === 0) {
      this.#commit()
      const { connection, state } = this.#within(session)
      this.#boxes.get(session)!.decide(operation, now)
      connection.exec('rollback')
      this.#open = undefined
      state.forget()
    }
    return this.#within(session).decide(operation, now)
  }

  write(): Promise<void> {
    return Promise.reject(new Error('not used'))
  }

  /** Checks that nothing but the counter is left once everything has expired. */
  end(): void {
    this.#within('amy').decide({ type: 'sweepExpired', keys: LOCKS }, this.#now + 100_000)
    this.#commit()
    const count = (table: string): unknown =>
      connections[0]!.prepare(`select count(*) from ${table}`).get()![0]
    expect(['queues', 'tails', 'requests'].map(count)).toEqual([1, 0, 0])
  }

  #within(session: string): FileBox {
    const box = this.#boxes.get(session)!
    if (this.#open === box) return box
    this.#commit()
    expect(box.connection.begin()).toBe(true)
    return (this.#open = box)
  }

  #commit(): void {
    this.#open?.connection.exec('commit')
    this.#open = undefined
  }
}

function storedIn(state: FileState): StoredTable {
  const requests = new Map<string, StoredRequest>()
  const queues = new Map<string, string[]>()
  for (const key of state.keys('')) {
    const queue = [...state.queue(key)!].map(({ request }) => request)
    queues.set(
      key,
      queue.map(({ id }) => id),
    )
    for (const { id, phase, expires, isCovered, session, lease, number, since, label, claims } of queue) {
      const seen = phase === 'waiting' && isCovered ? state.seen(session) : undefined
      requests.set(id, { id, phase, expires, seen, lease, number, since, label, claims: inOrder(claims) })
    }
  }
  return { requests, queues }
}

test.each<[HistoryKind, number]>([
  ['any', 25],
  ['crowded', 10],
  ['together', 10],
])(
  'the state in a database decides as the state in variables does: %s operations',
  async (kind, histories) => {
    for (let seed = 1; seed <= histories; seed++)
      await compareHistories(() => new FileTablePort(seed), seed, 1, kind)
  },
  180_000,
)
