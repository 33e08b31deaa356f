import { DataTypes, Sequelize, type Transaction } from 'sequelize'
import type { ClientLender, SqlTransaction } from 'signalbox'
import type { Connect } from '../orm.ts'

export const connect: Connect = url => {
  const sequelize = new Sequelize(url, { logging: false, pool: { max: 10 } })
  const invoice = sequelize.define(
    'invoice',
    { id: { type: DataTypes.INTEGER, primaryKey: true }, paid: DataTypes.BOOLEAN },
    { freezeTableName: true, timestamps: false },
  )
  const runner = (transaction: Transaction | null): SqlTransaction => ({
    query: async (text, bind) => (await sequelize.query(text, { bind, transaction }))[0],
  })
  const manager = sequelize.connectionManager
  return {
    source: {
      postgres: {
        connect: () => manager.getConnection({ type: 'write' }),
        release: client => manager.releaseConnection(client),
      } satisfies ClientLender,
    },
    transaction: work =>
      sequelize.transaction(transaction =>
        work(runner(transaction), id => invoice.update({ paid: true }, { where: { id }, transaction })),
      ),
    outside: runner(null),
    close: () => sequelize.close(),
  }
}
