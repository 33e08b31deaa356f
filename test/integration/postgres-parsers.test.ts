import { randomUUID } from 'node:crypto'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, describe, expect, test } from 'vitest'
import { open, type SqlTransaction } from '../../src/index.js'
import { startPostgres } from '../support/servers/postgres.js'

const server = await startPostgres()
afterAll(() => server.kill())

/** A client that parses every column differently, with a function that makes a transaction with it. */
interface OddClient {
  readonly client: object
  transaction(work: (client: SqlTransaction) => Promise<void>): Promise<void>
  close(): Promise<void>
}

const odd = (text: unknown): unknown => ({ odd: text })

const makers: readonly (readonly [name: string, make: () => OddClient])[] = [
  [
    'a Pool of pg',
    () => {
      const types = { getTypeParser: () => odd }
      const pool = new pg.Pool({ connectionString: server.url, types: types as never })
      return {
        client: pool,
        async transaction(work) {
          const client = await pool.connect()
          await client.query('begin')
          await work(client)
          await client.query('commit')
          client.release()
        },
        close: () => pool.end(),
      }
    },
  ],
  [
    'a sql of postgres',
    () => {
      const parse = { from: [16, 23, 25, 114], to: 25, parse: odd, serialize: String }
      const sql = postgres(server.url, {
        types: { odd: parse as never },
        transform: { value: odd, column: () => 'column', row: (row: object) => ({ ...row }) },
      })
      return {
        client: sql,
        transaction: async work => void (await sql.begin(transaction => work(transaction))),
        close: () => sql.end({ timeout: 1 }),
      }
    },
  ],
]

describe.each(makers)('%s that parses types differently', (_, make) => {
  test('supports locks, values, a fence and a store transaction of a box', async () => {
    const { client, transaction, close } = make()
    {
      await using box = await open({ postgres: client, schema: `s${randomUUID().slice(0, 8)}` })
      const store = box.store('s')
      await store.put('key', 1)
      await box.mutex('a').run(async grant => {
        await transaction(async within => {
          await grant.fence(within)
          await store.transaction(['key'], tx => tx.put('key', tx.get<number>('key')! + 1), { in: within })
        })
      })
      expect((await store.get('key'))?.value).toBe(2)
      expect(await box.limiter('api', { limit: 1, per: '1s' }).tryAcquire()).toBeDefined()
    }
    await close()
  })
})
