import { costWorks } from './costs/part.js'
import { fileWorks } from './file/part.js'
import { lockfileWorks } from './file/lockfile.js'
import { growthWorks } from './growth/part.js'
import { hazelcastWorks } from './hazelcast/part.js'
import { limitWorks } from './limits/part.js'
import { memoryWorks } from './memory/part.js'
import type { ForkedSubject } from './processes/forked.js'
import { postgresWorks } from './postgres/part.js'
import { redisWorks } from './redis/part.js'
import { quorumWorks } from './redis/quorum.js'
import { storeWorks } from './store/part.js'
import { trainWorks } from './trains/part.js'
import { idOf, type Work } from './work.js'
import { zooKeeperWorks } from './zookeeper/part.js'

/** All works, in the order in which they are measured. */
export const works: readonly Work[] = [
  ...memoryWorks,
  ...costWorks,
  ...fileWorks,
  ...lockfileWorks,
  ...redisWorks,
  ...quorumWorks,
  ...zooKeeperWorks,
  ...hazelcastWorks,
  ...postgresWorks,
  ...storeWorks,
  ...trainWorks,
  ...limitWorks,
  ...growthWorks,
]

/** The parts that `--only` accepts. */
export const parts: readonly string[] = [...new Set(works.map(({ part }) => part))]

/** Returns the subject with this name, for its processes. */
export function forkedSubject(work: string, subject: string): ForkedSubject {
  const found = works.find(other => idOf(other) === work)?.subjects.find(({ name }) => name === subject)
  if (!found || !('prepare' in found)) throw new Error(`no process takes part in ${work} as ${subject}`)
  return found as ForkedSubject
}
