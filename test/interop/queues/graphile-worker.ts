import { makeWorkerUtils } from 'graphile-worker'
import type { Connect } from './client.ts'

export const connect: Connect = async url => {
  const utils = await makeWorkerUtils({ connectionString: url })
  await utils.migrate()
  return {
    add: jobs =>
      utils.addJobs(
        jobs.map(payload => ({
          identifier: 'orders',
          payload,
          jobKey: `${payload.customer}:${payload.order}`,
          flags: [payload.customer],
        })),
      ),
    // Requeues the jobs, like an operator, because a dead worker otherwise keeps its jobs for four hours.
    recover: async () => {
      const dead = await utils.withPgClient(client =>
        client.query<{ locked_by: string }>(
          `select locked_by from graphile_worker.jobs where locked_at < now() - interval '8 seconds'`,
        ),
      )
      await utils.forceUnlockWorkers(dead.rows.map(({ locked_by }) => locked_by))
    },
    unfinished: () =>
      utils.withPgClient(async client => {
        const { rows } = await client.query<{ count: number }>(
          'select count(*)::int from graphile_worker.jobs where attempts < max_attempts',
        )
        return rows[0]!.count
      }),
    close: async () => utils.release(),
  }
}
