import { startHazelcast } from '../../test/support/servers/hazelcast.js'
import { distinctKeys, hotKey, sequential } from '../file/works.js'
import { byHand } from '../lockers/hazelcast-by-hand.js'
import { lockContext } from '../lockers/hazelcast-lock-context.js'
import { hazelcastUrl } from '../lockers/hazelcast-server.js'
import { signalboxHazelcast } from '../lockers/signalbox-server.js'
import { RUN_SECONDS, tracker, type MakeState } from '../trains/tracker.js'
import type { Comparison, Goal, Work } from '../work.js'
import { hazelcastPort } from './straight-port.js'

function field(goal: Goal): Parameters<typeof sequential>[0] {
  const faster: Comparison = { measure: 'opsPerSecond', of: 'signalbox', to: byHand.name, goal }
  return { part: 'hazelcast', libraries: [signalboxHazelcast, byHand], comparisons: [faster] }
}

/** One key that many tasks of a process want: what the client's own way of it makes of that, too. */
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

/** One key that many processes want: none should wait much longer than the others. */
function manyProcesses(): Work {
  const work = hotKey(field({ atLeast: 3 }), { processes: 4, tasks: 4 })
  return {
    ...work,
    targets: [{ measure: 'worst wait to median', of: 'signalbox', goal: { atMost: 5 } }],
  }
}

/** A member for each run of the train tracker. */
const onMember: MakeState = async () => {
  const server = await startHazelcast()
  return { engine: hazelcastUrl(server.address), clear: () => server.kill() }
}

function trains(processes: number): Work {
  const ours = tracker(processes, onMember, 'signalbox')
  const port = hazelcastPort(processes)
  return {
    part: 'hazelcast',
    name: `messages of the train tracker with ${processes} ${processes === 1 ? 'process' : 'processes'}`,
    seconds: RUN_SECONDS,
    mostRounds: 3,
    subjects: [ours, port],
    comparisons: [{ measure: 'opsPerSecond', of: 'signalbox', to: port.name, goal: { atLeast: 5 } }],
  }
}

/** The tracker with a second process beside the first: it is to be faster for that. */
function moreProcesses(): Work {
  const [one, two] = [tracker(1, onMember), tracker(2, onMember)]
  return {
    part: 'hazelcast',
    name: 'messages of the train tracker, by the number of processes',
    seconds: RUN_SECONDS,
    mostRounds: 3,
    subjects: [one, two],
    comparisons: [{ measure: 'opsPerSecond', of: two.name, to: one.name, goal: { atLeast: 1 } }],
  }
}

/** Locks and transactions on one Hazelcast member. */
export const hazelcastWorks: readonly Work[] = [
  sequential(field({ atLeast: 1 })),
  distinctKeys(field({ atLeast: 1 }), 64),
  oneProcess(),
  manyProcesses(),
  trains(1),
  trains(2),
  moreProcesses(),
]
