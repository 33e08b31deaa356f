import { PrismaPg } from '@prisma/adapter-pg'
import pg from 'pg'
import type { SqlTransaction } from 'signalbox'
import type { Connect } from '../orm.ts'
import { PrismaClient, type Prisma } from './build/client.ts'

export const connect: Connect = url => {
  const pool = new pg.Pool({ connectionString: url })
  pool.on('error', () => undefined)
  const prisma = new PrismaClient({ adapter: new PrismaPg(pool) })
  const runner = (tx: Prisma.TransactionClient): SqlTransaction => ({
    query: (text, values) => tx.$queryRawUnsafe(text, ...values),
  })
  return {
    source: { postgres: pool },
    transaction: work =>
      prisma.$transaction(tx =>
        work(runner(tx), id => tx.invoice.update({ where: { id }, data: { paid: true } })),
      ),
    outside: runner(prisma),
    async close() {
      await prisma.$disconnect()
      await pool.end()
    },
  }
}
