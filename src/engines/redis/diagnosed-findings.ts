import { clockFindings } from '../../engine/kit/clock-findings.js'
import type { Finding } from '../../engine/diagnosis.js'
import type { RedisFacts } from './diagnosed-facts.js'

const LEAST_VERSION = 7

/**
 * What the facts about one server say of the promises.
 * @param minReplicas what the URL asks for.
 */
export function redisFindings(facts: RedisFacts, minReplicas: number): Finding[] {
  return [
    ...version(facts),
    ...role(facts),
    ...persistence(facts),
    ...eviction(facts),
    ...replication(facts, minReplicas),
    ...clockFindings(
      facts,
      ['P2', 'P11'],
      gap => `the server's clock is ${gap}, and leases jump when it is set right`,
    ),
  ]
}

function version({ version: text }: RedisFacts): Finding[] {
  if (text === undefined || Number.parseInt(text, 10) >= LEAST_VERSION) return []
  return [
    {
      id: 'version',
      promises: ['P1', 'P13'],
      how: `the server is Redis ${text}, whose scripts can't promise what they do in ${LEAST_VERSION}.0`,
      mend: `use Redis ${LEAST_VERSION}.0 or later`,
    },
  ]
}

function role({ role: name }: RedisFacts): Finding[] {
  if (name === undefined || name === 'master') return []
  return [
    {
      id: 'replica',
      promises: [],
      how: 'the server is a replica, which refuses to be written to',
      mend: 'name the master, or redis+sentinel: with the Sentinels, which know it',
    },
  ]
}

function persistence({ settings }: RedisFacts): Finding[] {
  const [appendonly, save] = [settings.get('appendonly'), settings.get('save')]
  if (appendonly === 'no' && save !== undefined) {
    const lost = save === '' ? 'all that it had' : 'all that came after its last snapshot'
    return [
      {
        id: save === '' ? 'no-persistence' : 'snapshots-only',
        promises: ['P1', 'P13'],
        how: `a server that crashes loses ${lost}: values, and locks that are given to others while their holders work`,
        mend: 'appendonly yes and appendfsync always, in redis.conf or with CONFIG SET',
      },
    ]
  }
  const appendfsync = settings.get('appendfsync')
  if (appendonly !== 'yes' || appendfsync === undefined || appendfsync === 'always') return []
  const lost =
    appendfsync === 'everysec' ? 'what came in the last seconds' : 'what the system had not written yet'
  return [
    {
      id: 'late-fsync',
      promises: ['P1', 'P13'],
      how: `appendfsync is ${appendfsync}, so a power cut loses ${lost}`,
      mend: 'appendfsync always, in redis.conf or with CONFIG SET',
    },
  ]
}

function eviction({ settings }: RedisFacts): Finding[] {
  const [limit, policy] = [settings.get('maxmemory'), settings.get('maxmemory-policy')]
  if (limit === undefined || limit === '0' || policy === undefined || policy === 'noeviction') return []
  return [
    {
      id: 'eviction',
      promises: ['P1', 'P13'],
      how:
        `a server that has no memory left evicts keys (maxmemory-policy ${policy}), also those of locks that are ` +
        'held',
      mend: 'maxmemory-policy noeviction, in redis.conf or with CONFIG SET, or a server of its own for locks',
    },
  ]
}

function replication({ replicas, role: name }: RedisFacts, minReplicas: number): Finding[] {
  if (name !== 'master') return []
  if (replicas > minReplicas) {
    return [
      {
        id: 'asynchronous-replicas',
        promises: ['P1', 'P13'],
        how:
          `the server has ${replicas} replicas and minReplicas is ${minReplicas}, so one that becomes master may ` +
          'lack the newest grants and commits',
        mend: `minReplicas=${replicas} in the URL: as great as their number, because any of them may become master`,
      },
    ]
  }
  if (replicas === minReplicas) return []
  return [
    {
      id: 'too-few-replicas',
      promises: [],
      how: `the server has ${replicas} replicas and minReplicas is ${minReplicas}, so nothing is ever certain`,
      mend: 'start replicas, or lower minReplicas in the URL',
    },
  ]
}
