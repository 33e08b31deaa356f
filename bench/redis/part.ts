import { distinctKeys, hotKey, sequential } from '../file/works.js'
import { rawIoredis, rawNodeRedis, redisSemaphore, redlock, verrou } from '../lockers/redis-peers.js'
import { rFairLock, rLock } from '../lockers/redisson.js'
import { signalboxRedis } from '../lockers/signalbox-server.js'
import type { Comparison, Goal, Work } from '../work.js'

const npm = [rawIoredis, rawNodeRedis, redlock, redisSemaphore, verrou]
// No process waits for a lock in these works, so fairness makes no difference.
const free = [signalboxRedis, ...npm, rLock]
const wanted = [...free, rFairLock]

function against(
  measure: Comparison['measure'],
  peers: readonly { readonly name: string }[],
  goal?: Goal,
): Comparison[] {
  return peers.map(({ name }) => ({ measure, of: 'signalbox', to: name, goal }))
}

function faster(goals: { readonly npm: Goal; readonly redisson?: Goal }, redisson = [rLock]): Comparison[] {
  return [...against('opsPerSecond', npm, goals.npm), ...against('opsPerSecond', redisson, goals.redisson)]
}

/** Comparisons of the worst wait. */
const waitsLess = [
  ...against('worst wait', npm, { atMost: 1 / 10 }),
  ...against('worst wait', [rLock, rFairLock]),
]

/** Locks on one Redis server. */
export const redisWorks: readonly Work[] = [
  sequential({ part: 'redis', libraries: free, comparisons: faster({ npm: { atLeast: 1 } }) }),
  distinctKeys({ part: 'redis', libraries: free, comparisons: faster({ npm: { atLeast: 2.5 } }) }, 64),
  hotKey(
    {
      part: 'redis',
      libraries: wanted,
      comparisons: [...faster({ npm: { atLeast: 50 } }, [rLock, rFairLock]), ...waitsLess],
    },
    { processes: 1, tasks: 16 },
  ),
  {
    ...hotKey(
      {
        part: 'redis',
        libraries: wanted,
        comparisons: [
          ...faster({ npm: { atLeast: 10 }, redisson: { atLeast: 10 } }, [rLock, rFairLock]),
          ...waitsLess,
        ],
      },
      { processes: 4, tasks: 4 },
    ),
    targets: [{ measure: 'worst wait to median', of: 'signalbox', goal: { atMost: 3 } }],
  },
]
