import { distinctKeys, hotKey, sequential } from '../file/works.js'
import { curator } from '../lockers/curator.js'
import { kazoo } from '../lockers/kazoo.js'
import { signalboxZooKeeper } from '../lockers/signalbox-server.js'
import { recipes } from '../lockers/zookeeper-recipe.js'
import type { Comparison, Goal, Work } from '../work.js'
import { createsWork, serverWorks } from './creates.js'

function field(goals: { toCurator: Goal; toRecipes?: Goal }): Parameters<typeof sequential>[0] {
  const to = ({ name }: { readonly name: string }, goal?: Goal): Comparison => ({
    measure: 'opsPerSecond',
    of: 'signalbox',
    to: name,
    goal,
  })
  return {
    part: 'zookeeper',
    libraries: [signalboxZooKeeper, ...recipes, curator, kazoo],
    comparisons: [...recipes.map(one => to(one, goals.toRecipes)), to(curator, goals.toCurator), to(kazoo)],
  }
}

/** Locks on one ZooKeeper server. */
export const zooKeeperWorks: readonly Work[] = [
  sequential(field({ toCurator: { atLeast: 1.3 }, toRecipes: { atLeast: 1.5 } })),
  distinctKeys(field({ toCurator: { atLeast: 2 }, toRecipes: { atLeast: 2 } }), 64),
  hotKey(field({ toCurator: { atLeast: 50 } }), { processes: 1, tasks: 16 }),
  hotKey(field({ toCurator: { atLeast: 8 } }), { processes: 4, tasks: 4 }),
  createsWork,
  ...serverWorks,
]
