import { DataSource, EntitySchema } from 'typeorm'
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js'
import type { Connect } from '../orm.ts'

const invoice = new EntitySchema<{ id: number; paid: boolean }>({
  name: 'invoice',
  columns: { id: { type: Number, primary: true }, paid: { type: Boolean } },
})

export const connect: Connect = async url => {
  const source = new DataSource({ type: 'postgres', url, entities: [invoice] })
  await source.initialize()
  return {
    source: { postgres: (source.driver as PostgresDriver).master },
    transaction: work =>
      source.transaction(manager => work(manager, id => manager.update(invoice, { id }, { paid: true }))),
    outside: source.manager,
    close: () => source.destroy(),
  }
}
