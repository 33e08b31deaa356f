import { CompiledQuery, Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import type { SqlTransaction } from 'signalbox'
import type { Connect } from '../orm.ts'

interface Tables {
  readonly invoice: { readonly id: number; readonly paid: boolean }
}

export const connect: Connect = url => {
  const pool = new pg.Pool({ connectionString: url })
  pool.on('error', () => undefined)
  pool.on('connect', client => client.on('error', () => undefined))
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  const runner = (tx: Kysely<Tables>): SqlTransaction => ({
    query: (text, values) => tx.executeQuery(CompiledQuery.raw(text, values)),
  })
  return {
    source: { postgres: pool },
    transaction: work =>
      db
        .transaction()
        .execute(tx =>
          work(runner(tx), id =>
            tx.updateTable('invoice').set({ paid: true }).where('id', '=', id).execute(),
          ),
        ),
    outside: runner(db),
    close: () => db.destroy(),
  }
}
