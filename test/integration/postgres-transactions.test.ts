import pg from 'pg'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { until } from '../../packages/conformance/src/time.js'
import type { Commit, LockRequest, Operation } from '../../src/engine/contract.js'
import { Calls, serverCall } from '../../src/engines/postgres/calls.js'
import { sqlError, type Query } from '../../src/engines/postgres/clients/sql-client.js'
import { lockedRow, outcomeOf } from '../../src/engines/postgres/outcomes.js'
import { statementsOf } from '../../src/engines/postgres/statements.js'
import type { ServerOperation } from '../../src/engines/postgres/call-arguments.js'
import { open } from '../../src/index.js'
import { lockRequest } from '../support/lock-request.js'
import { startPostgres } from '../support/servers/postgres.js'

const TERMS = { lease: 60_000, wait: 60_000 }
const COMMIT = { guard: undefined, record: [], retention: 1000, release: false } as const

interface Versions {
  readonly versions: readonly number[]
}

let box: pg.Client
let other: pg.Client
let calls: Calls
let count = 0

const server = await startPostgres()
afterAll(() => server.kill())
await (await open(server.url)).close()

beforeEach(async () => {
  ;[box, other] = [new pg.Client(server.address), new pg.Client(server.address)]
  await Promise.all([box.connect(), other.connect()])
  calls = new Calls(statementsOf('signalbox'), () => ({ session: 's', host: 'h', pid: 1, label: undefined }))
})

afterEach(async () => {
  await Promise.all([box.end(), other.end()])
})

const query: Query = async (text, values) => {
  const sent = box.query<unknown[]>({ text, values: [...values], rowMode: 'array' })
  const { rows } = await sent.catch((error: unknown) => {
    throw sqlError(error, true)
  })
  return rows[0]?.[0]
}

/** Executes several operations in one call, and returns their outcomes. @param wait for locked rows, in milliseconds */
async function together(operations: readonly Operation[], wait = 200): Promise<unknown[]> {
  const sent = operations as readonly ServerOperation[]
  const { answers } = await calls.decide(sent.map(serverCall), query, { rowTimeout: wait })
  return sent.map((operation, index) => lockedRow(answers[index]!) ?? outcomeOf(operation, answers[index]!))
}

function enqueue(request: LockRequest): Operation {
  return { type: 'enqueue', request, ...TERMS }
}

function requestFor(key: string): LockRequest {
  return lockRequest(`s.${++count}`, [{ key, mode: 'exclusive' }])
}

function write(key: string, value: string, ...expect: Commit['expect']): Commit {
  return { type: 'commit', ...COMMIT, expect, writes: [{ key, value }] }
}

/** Begins a transaction that locks a row, in one of the modes of `select ... for`. */
async function lockRow(name: string, mode: string): Promise<void> {
  const row = `select id from signalbox.keys where name = '${name}'`
  await other.query(`begin; select from signalbox.data where id = (${row}) for ${mode}`)
}

const numberOf = (status: unknown): number => (status as { readonly number: number }).number
/** A second operation, which turns a call into one with several operations. */
const companion: Operation = { type: 'renew', request: requestFor('none'), number: 1, lease: 1000 }

test('of several grants in one call, one whose key another transaction is bound to waits', async () => {
  const [holder, waiting] = [requestFor('a'), requestFor('a')]
  const [held] = await together([enqueue(holder)])
  await together([{ type: 'release', request: holder, number: numberOf(held) }])
  await lockRow('lock/a', 'key share')
  const outcomes = await together([enqueue(waiting), enqueue(requestFor('b'))])
  expect(outcomes).toMatchObject([{ state: 'queued' }, { state: 'held' }])
  await other.query('rollback')
})

test('of several operations in one call, one claims a reserved key after the transaction that is bound to it', async () => {
  const [holder, waiting] = [requestFor('c'), requestFor('c')]
  const [held] = await together([enqueue(holder), companion])
  await together([enqueue(waiting), companion])
  await together([{ type: 'release', request: holder, number: numberOf(held) }, companion])
  await lockRow('lock/c', 'key share')
  const checkIn: Operation = { type: 'checkIn', request: waiting, ...TERMS }
  expect(await together([checkIn, companion])).toMatchObject([{ state: 'queued' }, false])
  await other.query('rollback')
  expect(await together([checkIn, companion])).toMatchObject([{ state: 'held' }, false])
})

test('of several commits in one call, one whose value another transaction has locked delays no other', async () => {
  await together([write('d', '1'), write('e', '1')])
  await lockRow('value/d', 'update')
  const outcomes = await together([write('d', '2'), write('e', '2')])
  expect(outcomes).toMatchObject(['value/d', { state: 'committed' }])
  await other.query('rollback')
})

test('a commit does not rely on a value that another transaction is writing', async () => {
  const [written] = (await together([write('f', '1'), write('g', '1')])) as [Versions]
  await lockRow('value/f', 'no key update')
  const outcomes = await together([
    write('g', '2', { key: 'f', version: written.versions[0]! }),
    write('h', '2'),
  ])
  expect(outcomes).toMatchObject(['value/f', { state: 'committed' }])
  await other.query('rollback')
})

test('a commit that waits for a row writes after what others have written meanwhile', async () => {
  const guard = requestFor('i')
  const [held] = await together([enqueue(guard), write('j', '1')])
  await lockRow('lock/i', 'update')
  const grant = { request: guard, number: numberOf(held) }
  const commit: Operation = { ...write('j', '2'), guard: grant, release: true }
  const committing = together([commit, companion], 20_000)
  await using third = await server.client()
  const waiting = "select from pg_stat_activity where wait_event_type = 'Lock' and query like '%decide%'"
  await until('the call waits', async () => (await third.query(waiting)).rowCount === 1)
  const { rows } = await third.query<{ version: string }>(
    `update signalbox.data set value = 'x', changes = changes + 1, version = version + 1000000000
      where name = 'value/j' returning version`,
  )
  await other.query('rollback')
  const [{ versions }] = (await committing) as [Versions]
  expect(versions[0]).toBeGreaterThan(Number(rows[0]!.version))
})
