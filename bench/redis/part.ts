import { distinctKeys, hotKey, sequential } from '../file/works.js'
import { startRedis } from '../../test/servers/redis.js'
import { rawIoredis, rawNodeRedis, redisSemaphore, redlock, verrou } from '../lockers/redis-peers.js'
import { redisPort } from './straight-port.js'
import { signalboxRedis } from '../lockers/signalbox-redis.js'
import { tracker, type MakeState } from '../trains/tracker.js'
import type { Comparison, Goal, Work } from '../work.js'

const peers = [rawIoredis, rawNodeRedis, redlock, redisSemaphore, verrou]
const libraries = [signalboxRedis, ...peers]

function faster(goal: Goal): Comparison[] {
  return peers.map(({ name }) => ({ measure: 'opsPerSecond', of: 'signalbox', to: name, goal }))
}

function waitsLess(goal: Goal): Comparison[] {
  return peers.map(({ name }) => ({ measure: 'worst wait', of: 'signalbox', to: name, goal }))
}

/** A server for each run of the train tracker. */
const onServer: MakeState = async () => {
  const server = await startRedis()
  return { engine: server.url, clear: () => server.stop() }
}

/** Locks and transactions on one Redis server. */
export const redisWorks: readonly Work[] = [
  sequential({ part: 'redis', libraries, comparisons: faster({ atLeast: 1 }) }),
  distinctKeys({ part: 'redis', libraries, comparisons: faster({ atLeast: 2.5 }) }, 64),
  hotKey(
    {
      part: 'redis',
      libraries,
      comparisons: [...faster({ atLeast: 50 }), ...waitsLess({ atMost: 1 / 10 })],
    },
    { processes: 1, tasks: 16 },
  ),
  hotKey(
    { part: 'redis', libraries, comparisons: [...faster({ atLeast: 10 }), ...waitsLess({ atMost: 1 / 10 })] },
    { processes: 4, tasks: 4 },
  ),
  {
    part: 'redis',
    name: 'messages of the train tracker with 4 processes',
    seconds: 2,
    mostRounds: 3,
    subjects: [tracker(4, onServer, 'signalbox'), redisPort],
    comparisons: [{ measure: 'opsPerSecond', of: 'signalbox', to: redisPort.name, goal: { atLeast: 10 } }],
  },
]
