import { distinctKeys, hotKey, sequential } from '../file/works.js'
import { signalboxZooKeeper } from '../lockers/signalbox-zookeeper.js'
import { recipe } from '../lockers/zookeeper-recipe.js'
import type { Comparison, Goal, Work } from '../work.js'
import { createsWork } from './creates.js'

function field(goal: Goal): Parameters<typeof sequential>[0] {
  const faster: Comparison = { measure: 'opsPerSecond', of: 'signalbox', to: recipe.name, goal }
  return { part: 'zookeeper', libraries: [signalboxZooKeeper, recipe], comparisons: [faster] }
}

/** Locks on one ZooKeeper server. */
export const zooKeeperWorks: readonly Work[] = [
  sequential(field({ atLeast: 1.5 })),
  distinctKeys(field({ atLeast: 2 }), 64),
  hotKey(field({ atLeast: 50 }), { processes: 1, tasks: 16 }),
  hotKey(field({ atLeast: 8 }), { processes: 4, tasks: 4 }),
  createsWork,
]
