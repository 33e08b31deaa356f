import { PgBoss } from 'pg-boss'
import type { Connect } from './client.ts'

export const connect: Connect = async url => {
  const boss = new PgBoss({ connectionString: url, supervise: false, monitorIntervalSeconds: 1 })
  await boss.start()
  // The job of a dead worker expires after this time.
  await boss.createQueue('orders', { expireInSeconds: 20, retryLimit: 3 })
  return {
    add: jobs =>
      boss.insert(
        'orders',
        jobs.map(data => ({ data, group: { id: data.customer } })),
      ),
    recover: () => boss.supervise('orders'),
    unfinished: async () => {
      const { rows } = await boss
        .getDb()
        .executeSql(
          `select count(*)::int as count from pgboss.job where name = 'orders' and state <> 'completed'`,
        )
      return (rows as { count: number }[])[0]!.count
    },
    close: () => boss.stop(),
  }
}
