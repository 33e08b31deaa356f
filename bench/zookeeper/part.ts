import { distinctKeys, hotKey, sequential } from '../file/works.js'
import { curator } from '../lockers/curator.js'
import { signalboxZooKeeper } from '../lockers/signalbox-zookeeper.js'
import { recipe } from '../lockers/zookeeper-recipe.js'
import type { Comparison, Goal, Work } from '../work.js'
import { createsWork } from './creates.js'

function field(goals: { toCurator: Goal; toRecipe?: Goal }): Parameters<typeof sequential>[0] {
  const to = (name: string, goal: Goal | undefined): Comparison => ({
    measure: 'opsPerSecond',
    of: 'signalbox',
    to: name,
    goal,
  })
  return {
    part: 'zookeeper',
    libraries: [signalboxZooKeeper, recipe, curator],
    comparisons: [to(recipe.name, goals.toRecipe), to(curator.name, goals.toCurator)],
  }
}

/** Locks on one ZooKeeper server. */
export const zooKeeperWorks: readonly Work[] = [
  sequential(field({ toCurator: { atLeast: 1.3 }, toRecipe: { atLeast: 1.5 } })),
  distinctKeys(field({ toCurator: { atLeast: 2 }, toRecipe: { atLeast: 2 } }), 64),
  hotKey(field({ toCurator: { atLeast: 50 } }), { processes: 1, tasks: 16 }),
  hotKey(field({ toCurator: { atLeast: 8 } }), { processes: 4, tasks: 4 }),
  createsWork,
]
