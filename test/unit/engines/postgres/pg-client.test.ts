import { EventEmitter } from 'node:events'
import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/base/clock.js'
import { STATEMENT_TIMEOUT } from '../../../../src/engines/postgres/clients/answered.js'
import {
  PgClient,
  type LentConnection,
  type PgPool,
} from '../../../../src/engines/postgres/clients/pg-client.js'

type Statement = Parameters<LentConnection['query']>[0]
type Result = Awaited<ReturnType<LentConnection['query']>>

/** A pool of one connection, which gives the replies of the test. */
class FakePool extends EventEmitter implements PgPool, LentConnection {
  readonly asked: Statement[] = []
  /** Whether the connection was ended, for each time that it was returned. */
  readonly released: boolean[] = []
  readonly #answer: (statement: Statement) => Promise<Result>

  constructor(answer: (statement: Statement) => Promise<Result>) {
    super()
    this.#answer = answer
  }

  connect(lent: Parameters<PgPool['connect']>[0]): void {
    lent(undefined, this)
  }

  query(statement: Statement): Promise<Result> {
    this.asked.push(statement)
    return this.#answer(statement)
  }

  release(end = false): void {
    this.released.push(end)
  }
}

const silent = () => new Promise<never>(() => undefined)
const row = (value: unknown): Promise<Result> => Promise.resolve({ rows: [[value]] })

/** Resolves after everything that needs no time has happened. */
const settled = () => new Promise(resolve => setImmediate(resolve))

test('statements are prepared under the same name each time', async () => {
  const pool = new FakePool(() => row('x'))
  const client = new PgClient('db', pool, new VirtualClock())
  expect(await client.query('select $1::text', ['x'])).toBe('x')
  await client.query('select $1::text', ['y'])
  await client.query('select 1', [])
  const [first, second, third] = pool.asked as { name: string }[]
  expect(first!.name).toMatch(/^signalbox_/)
  expect(second!.name).toBe(first!.name)
  expect(third!.name).not.toBe(first!.name)
  expect(pool.listenerCount('error')).toBe(0)
})

test('if a pool lends no connection in time, nothing was sent', async () => {
  const clock = new VirtualClock()
  let lend!: Parameters<PgPool['connect']>[0]
  const pool: PgPool = { connect: lent => (lend = lent) }
  const asked = new PgClient('db', pool, clock).query('select 1', [])
  clock.advance(STATEMENT_TIMEOUT)
  await expect(asked).rejects.toMatchObject({ isUnclear: false })
  // The client returns a connection that comes too late.
  const late = new FakePool(silent)
  lend(undefined, late)
  await settled()
  expect(late.released).toEqual([false])
})

test('statements that wait for a connection when the client is closed are rejected, and later ones', async () => {
  const clock = new VirtualClock()
  let lend!: Parameters<PgPool['connect']>[0]
  const client = new PgClient('db', { connect: lent => (lend = lent) }, clock)
  const asked = client.query('select 1', [])
  await client.close()
  const refused = { message: 'the box was closed', isUnclear: false }
  await expect(asked).rejects.toMatchObject(refused)
  const late = new FakePool(silent)
  lend(undefined, late)
  expect(late.released).toEqual([false])
  await expect(client.query('select 1', [])).rejects.toMatchObject(refused)
})
