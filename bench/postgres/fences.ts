import pg from 'pg'
import { open } from 'signalbox'
import type { Connect } from '../../test/interop/orm.js'
import type { ForkedSubject } from '../processes/forked.js'
import type { Work } from '../work.js'
import { callers } from './callers.js'

const CALLERS = 4
const FENCED = 'with a fence'
const PLAIN = 'without a fence'

/** The name of each package, and the module of the tests that uses it. */
const packages = [
  ['Drizzle', 'drizzle'],
  ['Kysely', 'kysely'],
  ['Prisma', 'prisma'],
  ['TypeORM', 'typeorm'],
  ['Knex', 'knex'],
  ['Sequelize', 'sequelize'],
  ['MikroORM', 'mikro-orm'],
] as const

/** Each caller holds its own lock, and changes its own row in each transaction. */
function subject(name: string, module: string, isFenced: boolean): ForkedSubject {
  return callers(name, CALLERS, async url => {
    const client = new pg.Client(url)
    await client.connect()
    await client.query('create table invoice (id int primary key, paid boolean not null)')
    await client.query(`insert into invoice select generate_series(0, ${CALLERS - 1}), false`)
    await client.end()
    const file = new URL(`../../../test/interop/orms/build/js/${module}.js`, import.meta.url).href
    const { connect } = (await import(file)) as { connect: Connect }
    const orm = await connect(url)
    const box = await open(orm.source)
    const locks = Array.from({ length: CALLERS }, (_, caller) => box.mutex(`invoice:${caller}`).acquire())
    const grants = await Promise.all(locks)
    return {
      do: caller =>
        orm.transaction(async (transaction, pay) => {
          if (isFenced) await grants[caller]!.fence(transaction)
          await pay(caller)
        }),
      async end() {
        await box.close()
        await orm.close()
      },
    }
  })
}

/** Transactions of packages, with and without a fence as their first statement. */
export const postgresFences: readonly Work[] = packages.map(([name, module]) => ({
  part: 'postgres',
  name: `transactions of ${name} by ${CALLERS} callers`,
  seconds: 1,
  subjects: [subject(FENCED, module, true), subject(PLAIN, module, false)],
  comparisons: [{ measure: 'opsPerSecond', of: FENCED, to: PLAIN }],
}))
