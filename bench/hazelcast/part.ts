import { distinctKeys, hotKey, sequential } from '../file/works.js'
import { byHand } from '../lockers/hazelcast-by-hand.js'
import { lockContext } from '../lockers/hazelcast-lock-context.js'
import { signalboxHazelcast } from '../lockers/signalbox-server.js'
import type { Comparison, Goal, Work } from '../work.js'

function field(goal: Goal): Parameters<typeof sequential>[0] {
  const faster: Comparison = { measure: 'opsPerSecond', of: 'signalbox', to: byHand.name, goal }
  return { part: 'hazelcast', libraries: [signalboxHazelcast, byHand], comparisons: [faster] }
}

/** One key that many tasks of a process want, also with the client's own `LockContext`. */
function oneProcess(): Work {
  const { libraries, comparisons, ...rest } = field({ atLeast: 1 })
  const toContext: Comparison = {
    measure: 'opsPerSecond',
    of: 'signalbox',
    to: lockContext.name,
    goal: { atLeast: 20 },
  }
  return hotKey(
    { ...rest, libraries: [...libraries, lockContext], comparisons: [...comparisons, toContext] },
    { processes: 1, tasks: 16 },
  )
}

/** One key that many processes want. No request should wait much longer than others. */
function manyProcesses(): Work {
  const work = hotKey(field({ atLeast: 3 }), { processes: 4, tasks: 4 })
  return {
    ...work,
    targets: [{ measure: 'worst wait to median', of: 'signalbox', goal: { atMost: 5 } }],
  }
}

/** Locks on one Hazelcast member. */
export const hazelcastWorks: readonly Work[] = [
  sequential(field({ atLeast: 1 })),
  distinctKeys(field({ atLeast: 1 }), 64),
  oneProcess(),
  manyProcesses(),
]
