import { startHazelcast } from '../../test/support/servers/hazelcast.js'
import { startRedis } from '../../test/support/servers/redis.js'
import { hazelcastUrl } from '../lockers/hazelcast-server.js'
import { startDurablePostgres } from '../lockers/postgres-server.js'
import type { Work } from '../work.js'
import { hazelcastPort } from './hazelcast-port.js'
import { redisPort } from './redis-port.js'
import { RUN_SECONDS, tracker, type MakeState } from './tracker.js'

const onRedis: MakeState = async () => {
  const server = await startRedis()
  return { engine: server.url, clear: () => server.stop() }
}

/** Writes of values wait for the disk. */
const onPostgres: MakeState = async () => {
  const server = await startDurablePostgres()
  return { engine: server.url, clear: () => server.kill() }
}

const onHazelcast: MakeState = async () => {
  const server = await startHazelcast()
  return { engine: hazelcastUrl(server.address), clear: () => server.kill() }
}

/** A work that runs the tracker. Each run has its own server, if the engine has one. */
function trains(engine: string, rest: Pick<Work, 'subjects' | 'comparisons' | 'targets'>): Work {
  const name = `messages of the train tracker on ${engine}`
  return { part: 'trains', name, seconds: RUN_SECONDS, mostRounds: 3, ...rest }
}

/** The tracker on files, where every commit is durable. */
function onFiles(): Work {
  const [one, two, four, eight] = [tracker(1), tracker(2), tracker(4), tracker(8)]
  return trains('files', {
    subjects: [one, two, four, eight],
    comparisons: [
      { measure: 'opsPerSecond', of: four.name, to: one.name, goal: { atLeast: 1 } },
      { measure: 'opsPerSecond', of: eight.name, to: four.name, goal: { atLeast: 0.9 } },
    ],
    targets: [
      { measure: 'opsPerSecond', of: one.name, goal: { atLeast: 40_000 } },
      { measure: 'least share', of: four.name, goal: { atLeast: 0.125 } },
      { measure: 'least share', of: eight.name, goal: { atLeast: 0.0625 } },
      { measure: 'p99 wait', of: four.name, goal: { atMost: 100 } },
      { measure: 'p99 wait', of: eight.name, goal: { atMost: 100 } },
    ],
  })
}

/**
 * The tracker on a Hazelcast member, in one and two processes. Each is compared with a direct port in as many
 * processes.
 */
function onMember(): Work {
  const [one, two] = [tracker(1, onHazelcast), tracker(2, onHazelcast)]
  const [onePort, twoPort] = [hazelcastPort(1), hazelcastPort(2)]
  return trains('Hazelcast', {
    subjects: [one, two, onePort, twoPort],
    comparisons: [
      { measure: 'opsPerSecond', of: one.name, to: onePort.name, goal: { atLeast: 6 } },
      { measure: 'opsPerSecond', of: two.name, to: twoPort.name, goal: { atLeast: 6 } },
      { measure: 'opsPerSecond', of: two.name, to: one.name, goal: { atLeast: 1 } },
    ],
  })
}

const four = tracker(4, onRedis)
const fourOnPostgres = tracker(4, onPostgres)

/** The train tracker on files, Redis, PostgreSQL and Hazelcast. */
export const trainWorks: readonly Work[] = [
  onFiles(),
  trains('Redis', {
    subjects: [four, redisPort],
    comparisons: [{ measure: 'opsPerSecond', of: four.name, to: redisPort.name, goal: { atLeast: 15 } }],
  }),
  trains('PostgreSQL', {
    subjects: [fourOnPostgres],
    comparisons: [],
    targets: [{ measure: 'opsPerSecond', of: fourOnPostgres.name, goal: { atLeast: 8000 } }],
  }),
  onMember(),
]
