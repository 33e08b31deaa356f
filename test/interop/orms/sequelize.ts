import { DataTypes, Sequelize, type Transaction } from 'sequelize'
import type { SqlTransaction } from 'signalbox'
import type { Connect } from '../orm.ts'

export const connect: Connect = url => {
  const sequelize = new Sequelize(url, { logging: false })
  const invoice = sequelize.define(
    'invoice',
    { id: { type: DataTypes.INTEGER, primaryKey: true }, paid: DataTypes.BOOLEAN },
    { freezeTableName: true, timestamps: false },
  )
  const runner = (transaction: Transaction | null): SqlTransaction => ({
    query: async (text, bind) => (await sequelize.query(text, { bind, transaction }))[0],
  })
  return {
    source: url,
    transaction: work =>
      sequelize.transaction(transaction =>
        work(runner(transaction), id => invoice.update({ paid: true }, { where: { id }, transaction })),
      ),
    outside: runner(null),
    close: () => sequelize.close(),
  }
}
