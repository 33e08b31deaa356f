import { EntitySchema, MikroORM, type EntityManager } from '@mikro-orm/postgresql'
import type { ClientLender, SqlTransaction } from 'signalbox'
import type { Connect } from '../orm.ts'

const invoice = new EntitySchema<{ id: number; paid: boolean }>({
  name: 'invoice',
  properties: { id: { type: 'number', primary: true }, paid: { type: 'boolean' } },
})

export const connect: Connect = async url => {
  const orm = await MikroORM.init({ clientUrl: url, entities: [invoice] })
  const runner = (em: EntityManager): SqlTransaction => ({
    query: (text, values) => em.execute(text.replace(/\$\d+/g, '?'), values),
  })
  const knex = orm.em.getKnex()
  return {
    source: {
      postgres: {
        connect: () => knex.client.acquireConnection(),
        release: client => knex.client.releaseConnection(client),
      } satisfies ClientLender,
    },
    transaction: work =>
      orm.em
        .fork()
        .transactional(em => work(runner(em), id => em.nativeUpdate(invoice, { id }, { paid: true }))),
    outside: runner(orm.em.fork()),
    close: () => orm.close(),
  }
}
