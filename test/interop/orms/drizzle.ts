import { eq, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { boolean, integer, pgTable } from 'drizzle-orm/pg-core'
import type { SqlTransaction } from 'signalbox'
import type { Connect } from '../orm.ts'

const invoice = pgTable('invoice', { id: integer().primaryKey(), paid: boolean().notNull() })

export const connect: Connect = url => {
  const db = drizzle(url)
  db.$client.on('connect', client => client.on('error', () => undefined))
  db.$client.on('error', () => undefined)
  const runner = (tx: Pick<typeof db, 'execute'>): SqlTransaction => ({
    query: (text, values) => tx.execute(sql(text.split(/\$\d+/) as never, ...values)),
  })
  return {
    source: { postgres: db.$client },
    transaction: work =>
      db.transaction(tx =>
        work(runner(tx), async id => tx.update(invoice).set({ paid: true }).where(eq(invoice.id, id))),
      ),
    outside: runner(db),
    close: () => db.$client.end(),
  }
}
