import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../../packages/conformance/src/time.js'
import { LostError, open, type Box, type SqlTransaction } from '../../src/index.js'
import { runProgram } from '../support/run-program.js'
import { startPgBouncer, type PgBouncer } from '../support/servers/pgbouncer.js'
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js'
import type { Connect, Orm } from './orm.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** The name of each package in the docs, and the module in `orms` that uses it. */
const packages = [
  ['Drizzle', 'drizzle'],
  ['Drizzle over postgres', 'drizzle-postgres'],
  ['Kysely', 'kysely'],
  ['Prisma', 'prisma'],
  ['TypeORM', 'typeorm'],
  ['Knex', 'knex'],
  ['Sequelize', 'sequelize'],
  ['MikroORM', 'mikro-orm'],
] as const

let server: PostgresServer
let pooler: PgBouncer
/** A box that stands for another process. */
let other: Box

beforeAll(async () => {
  const listeners = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException').on('uncaughtException', (error, origin) => {
    if (!isLateWrite(error)) for (const listener of listeners) listener(error, origin)
  })
  server = await startPostgres()
  pooler = await startPgBouncer(server)
  await server.query('create table invoice (id int generated always as identity primary key, paid boolean)')
  other = await open(server.url)
})

afterAll(async () => {
  await other.close()
  await pooler.kill()
  await server.kill()
})

async function makeInvoice(): Promise<number> {
  const [row] = await server.query<{ id: number }>('insert into invoice (paid) values (false) returning id')
  return row!.id
}

async function isPaid(id: number): Promise<boolean> {
  const [row] = await server.query<{ paid: boolean }>(`select paid from invoice where id = ${id}`)
  return row!.paid
}

test('the types of all packages fit', async () => {
  const argv = ['node_modules/typescript/bin/tsc', '-p', 'test/interop/orms', '--noCheck', 'false']
  await runProgram(process.execPath, argv, { cwd: root, timeLimit: 110_000 })
})

test.each(packages.filter(([name]) => name !== 'Drizzle over postgres'))(
  'the docs show for %s what is tested here',
  (name, module) => {
    const page = readFileSync(join(root, 'docs/postgres.md'), 'utf8')
    const source = readFileSync(join(root, `test/interop/orms/${module}.ts`), 'utf8')
    const rows = [...page.matchAll(new RegExp(`^\\| ${name} \\| .*\`(.+)\`.* \\|$`, 'gm'))]
    // The page shows the object for `open`, and the object that stands for a transaction.
    const shown = rows.map(([, code]) => code!).filter(code => /\W/.test(code))
    expect(rows).toHaveLength(2)
    for (const code of shown) expect(withoutLayout(source)).toContain(withoutLayout(code))
    const listener = "on('connect', client => client.on('error', () => undefined))"
    expect(page).toContain(`pool.${listener}`)
    const needsListener = rows.some(([row]) => row.endsWith(' | yes |'))
    expect(withoutLayout(source).includes(withoutLayout(listener))).toBe(needsListener)
  },
)

function withoutLayout(code: string): string {
  return code.replaceAll(/\s/g, '').replaceAll(',}', '}')
}

describe.each(packages)('in a transaction of %s', (_, module) => {
  describe.each([
    ['directly', () => server.url],
    ['through PgBouncer', () => pooler.url],
  ])('%s', (_, url) => {
    let orm: Orm
    let box: Box

    beforeAll(async () => {
      const { connect } = (await import(`./orms/${module}.ts`)) as { connect: Connect }
      orm = await connect(url())
      box = await open(orm.source)
    })

    afterAll(async () => {
      await box.close()
      await orm.close()
    })

    test('the next holder waits for the commit', async () => {
      const id = await makeInvoice()
      const grant = await box.mutex(`invoice ${id}`).acquire()
      await orm.transaction(async (transaction, pay) => {
        await grant.fence(transaction)
        await pay(id)
        await grant.release()
        expect(await other.mutex(`invoice ${id}`).tryAcquire()).toBeUndefined()
      })
      await other.mutex(`invoice ${id}`).run(async () => expect(await isPaid(id)).toBe(true), { wait: '10s' })
    })

    test('a holder that has lost its grant writes nothing', async () => {
      const id = await makeInvoice()
      const grant = await box.mutex(`invoice ${id}`).acquire()
      expect(await other.forceRelease(`invoice ${id}`, grant.token)).toBe(true)
      const late = orm.transaction(async (transaction, pay) => {
        await pay(id)
        await grant.fence(transaction)
      })
      await expect(late).rejects.toThrow(LostError)
      expect(await isPaid(id)).toBe(false)
    })

    test('a box on its connections works again after the server has ended them', async () => {
      await server.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where pid <> pg_backend_pid() and backend_type = 'client backend'`,
      )
      const work = (): Promise<boolean> => box.mutex('again').run(() => true)
      await until('the box works', () => work().catch(() => false))
    })

    test('a connection that the server ends fails its transaction, and does not end the process', async () => {
      const uncaught = await uncaughtDuring(async () => {
        const failing = orm.transaction(async transaction => {
          const [row] = await runIn(transaction, 'select pg_backend_pid() as pid')
          await server.query(`select pg_terminate_backend(${(row as { pid: number }).pid}, 5000)`)
          await runIn(transaction, 'select 1')
        })
        await expect(failing).rejects.toThrow()
        // The client reports the loss in a later turn.
        await setTimeout(20)
      })
      expect(uncaught.filter(error => !isLateWrite(error))).toEqual([])
    })

    test('values are written with the row, or neither is', async () => {
      const id = await makeInvoice()
      const accounts = box.store('accounts')
      const key = `'$1' ? ${id}`
      const move = async (transaction: SqlTransaction): Promise<void> => {
        const outcome = await accounts.transaction([key], tx => tx.put(key, { text: `{"a'\\?$1:b` }), {
          in: transaction,
          id: key,
        })
        expect(outcome.applied).toBe(true)
      }
      const failing = orm.transaction(async (transaction, pay) => {
        await move(transaction)
        await pay(id)
        throw new Error('of the application')
      })
      await expect(failing).rejects.toThrow('of the application')
      expect([await isPaid(id), await other.store('accounts').get(key)]).toEqual([false, undefined])
      await orm.transaction(async (transaction, pay) => {
        await move(transaction)
        await pay(id)
      })
      expect(await isPaid(id)).toBe(true)
      expect((await other.store('accounts').get(key))?.value).toEqual({ text: `{"a'\\?$1:b` })
    })

    test.each([
      ['what has begun no transaction', 'has begun none', undefined],
      ['an aborted transaction', 'is aborted', 'select 1 / 0'],
      ['a read-only transaction', 'is read-only', 'set transaction read only'],
    ])('%s is refused', async (_, reason, before) => {
      const key = randomUUID()
      const refused = {
        code: 'INVALID_ARGUMENT',
        message: expect.stringMatching(`^a transaction is .* ${reason}`),
      }
      for (const bind of [
        (transaction: SqlTransaction) => box.mutex(key).run(grant => grant.fence(transaction)),
        (transaction: SqlTransaction) =>
          box.store('s').transaction([key], tx => tx.put(key, 1), { in: transaction }),
      ]) {
        if (before === undefined) {
          await expect(bind(orm.outside)).rejects.toMatchObject(refused)
          continue
        }
        const rolledBack = orm.transaction(async transaction => {
          await runIn(transaction, before).catch(() => undefined)
          await expect(bind(transaction)).rejects.toMatchObject(refused)
          throw new Error('of the application')
        })
        await expect(rolledBack).rejects.toThrow('of the application')
      }
      expect(await other.store('s').get(key)).toBeUndefined()
    })
  })
})

/** Runs a statement of the application in its transaction, and returns the rows. */
async function runIn(transaction: SqlTransaction, text: string): Promise<readonly unknown[]> {
  if (!('query' in transaction)) throw new Error('all packages here have a query')
  const result = await transaction.query(text, [])
  return 'rows' in result ? result.rows : result
}

/** Whether `postgres` 3.4.9 wrote to a closed connection: https://github.com/porsager/postgres/issues/1154 */
function isLateWrite(error: unknown): boolean {
  return String(error).includes("null (reading 'write')")
}

/** Returns the uncaught errors during `work`, which would have ended the process. */
async function uncaughtDuring(work: () => Promise<void>): Promise<readonly unknown[]> {
  const listeners = process.listeners('uncaughtException')
  const errors: unknown[] = []
  const note = (error: unknown): void => void errors.push(error)
  process.removeAllListeners('uncaughtException').on('uncaughtException', note)
  try {
    await work()
  } finally {
    process.off('uncaughtException', note)
    for (const listener of listeners) process.on('uncaughtException', listener)
  }
  return errors
}
