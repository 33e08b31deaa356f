import { distinctKeys, hotKey, sequential } from '../file/works.js'
import { advisory, advisoryWithin, polledAdvisory, rowLock } from '../lockers/postgres-peers.js'
import { IDLE_BOXES } from '../lockers/postgres-server.js'
import { crowdedPostgres, signalboxPostgres } from '../lockers/signalbox-server.js'
import type { Comparison, Goal, Work } from '../work.js'
import { postgresFences } from './fences.js'
import { postgresPermits } from './permits.js'
import { postgresValues } from './values.js'

const peers = [advisory, polledAdvisory, advisoryWithin, rowLock]
const libraries = [signalboxPostgres, ...peers]

function against(measure: Comparison['measure'], goal: Goal): Comparison[] {
  return peers.map(({ name }) => ({ measure, of: 'signalbox', to: name, goal }))
}

/** Locks, permits and values on one PostgreSQL server. */
export const postgresWorks: readonly Work[] = [
  sequential({ part: 'postgres', libraries, comparisons: against('opsPerSecond', { atLeast: 0.5 }) }),
  distinctKeys({ part: 'postgres', libraries, comparisons: against('opsPerSecond', { atLeast: 2 }) }, 64),
  hotKey(
    { part: 'postgres', libraries, comparisons: against('opsPerSecond', { atLeast: 30 }) },
    { processes: 1, tasks: 16 },
  ),
  hotKey(
    {
      part: 'postgres',
      libraries,
      comparisons: [...against('opsPerSecond', { atLeast: 3 }), ...against('worst wait', { atMost: 1 / 2 })],
    },
    { processes: 4, tasks: 4 },
  ),
  {
    ...hotKey(
      {
        part: 'postgres',
        libraries: [signalboxPostgres, crowdedPostgres],
        comparisons: [
          { measure: 'opsPerSecond', of: crowdedPostgres.name, to: 'signalbox', goal: { atLeast: 0.8 } },
        ],
      },
      { processes: 4, tasks: 4 },
    ),
    name: `one key wanted by 4 processes with 4 tasks each, next to ${IDLE_BOXES} idle boxes or none`,
  },
  postgresPermits,
  ...postgresValues,
  ...postgresFences,
]
