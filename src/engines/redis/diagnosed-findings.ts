import { clockFindings } from '../../engine/kit/clock-findings.js'
import type { Finding } from '../../engine/diagnosis.js'
import type { RedisFacts } from './diagnosed-facts.js'

const MIN_VERSION = 7

/**
 * Returns the reasons why one server weakens the promises.
 * @param minReplicas the option of the URL.
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
      gap => `the server's clock is ${gap}, and leases expire early or late when it is corrected`,
    ),
  ]
}

function version({ version: text }: RedisFacts): Finding[] {
  if (text === undefined || Number.parseInt(text, 10) >= MIN_VERSION) return []
  return [
    {
      id: 'version',
      promises: ['P1', 'P13'],
      how: `the server is Redis ${text}, whose scripts lack guarantees that Redis ${MIN_VERSION}.0 gives`,
      fix: `use Redis ${MIN_VERSION}.0 or later`,
    },
  ]
}

function role({ role: name }: RedisFacts): Finding[] {
  if (name === undefined || name === 'master') return []
  return [
    {
      id: 'replica',
      promises: [],
      how: 'the server is a replica, which refuses writes',
      fix: 'name the master in the URL, or use redis+sentinel: with the Sentinels, which know it',
    },
  ]
}

function persistence({ settings }: RedisFacts): Finding[] {
  const [appendonly, save] = [settings.get('appendonly'), settings.get('save')]
  if (appendonly === 'no' && save !== undefined) {
    const lost = save === '' ? 'all its data' : 'all writes after its last snapshot'
    return [
      {
        id: save === '' ? 'no-persistence' : 'snapshots-only',
        promises: ['P1', 'P13'],
        how: `a server that crashes loses ${lost}: values, and locks, which it then grants to others while their holders still work`,
        fix: 'set appendonly yes and appendfsync always, in redis.conf or with CONFIG SET',
      },
    ]
  }
  const appendfsync = settings.get('appendfsync')
  if (appendonly !== 'yes' || appendfsync === undefined || appendfsync === 'always') return []
  const lost =
    appendfsync === 'everysec'
      ? 'the writes of the last seconds'
      : 'the writes that the system had not flushed yet'
  return [
    {
      id: 'late-fsync',
      promises: ['P1', 'P13'],
      how: `appendfsync is ${appendfsync}, so a power cut loses ${lost}`,
      fix: 'set appendfsync always, in redis.conf or with CONFIG SET',
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
        `a server that reaches maxmemory evicts keys (maxmemory-policy ${policy}), including those of locks that are ` +
        'held',
      fix: 'set maxmemory-policy noeviction, in redis.conf or with CONFIG SET, or use a separate server for locks',
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
          `the server has ${replicas} replicas and minReplicas is ${minReplicas}, so a replica that becomes master may ` +
          'lack the newest grants and commits',
        fix: `set minReplicas=${replicas} in the URL: the number of replicas, because any of them may become master`,
      },
    ]
  }
  if (replicas === minReplicas) return []
  return [
    {
      id: 'too-few-replicas',
      promises: [],
      how: `the server has ${replicas} replicas and minReplicas is ${minReplicas}, so no write can be confirmed`,
      fix: 'start more replicas, or lower minReplicas in the URL',
    },
  ]
}
