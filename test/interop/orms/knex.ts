import makeKnex, { type Knex } from 'knex'
import type { ClientLender, SqlTransaction } from 'signalbox'
import type { Connect } from '../orm.ts'

export const connect: Connect = url => {
  const knex = makeKnex({ client: 'pg', connection: url })
  const runner = (trx: Knex): SqlTransaction => ({
    query: (text, values) => trx.raw(text.replace(/\$\d+/g, '?'), values),
  })
  return {
    source: {
      postgres: {
        connect: () => knex.client.acquireConnection(),
        release: client => knex.client.releaseConnection(client),
      } satisfies ClientLender,
    },
    transaction: work =>
      knex.transaction(trx =>
        work(runner(trx), async id => trx('invoice').where({ id }).update({ paid: true })),
      ),
    outside: runner(knex),
    close: () => knex.destroy(),
  }
}
