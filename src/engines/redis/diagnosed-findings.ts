import { clockFindings } from '../../engine/kit/clock-findings.js'
import type { Finding } from '../../engine/diagnosis.js'
import type { RedisFacts } from './diagnosed-facts.js'

const MIN_VERSION = 7
/** The promises that a server breaks when it loses grants and commits. */
const LOSS = ['P1', 'P13'] as const

/**
 * Returns the reasons why one server weakens the promises.
 * @param minReplicas the option of the URL.
 */
export function redisFindings(facts: RedisFacts, minReplicas: number): Finding[] {
  const { replicas, role, settings, version } = facts
  const findings: Finding[] = []
  const add = (id: string, promises: Finding['promises'], how: string, fix: string): unknown =>
    findings.push({ id, promises, how, fix })

  if (version !== undefined && Number.parseInt(version, 10) < MIN_VERSION)
    add(
      'version',
      LOSS,
      `the server is Redis ${version}, whose scripts lack guarantees that Redis ${MIN_VERSION}.0 gives`,
      `use Redis ${MIN_VERSION}.0 or later`,
    )

  if (role !== undefined && role !== 'master')
    add(
      'replica',
      [],
      'the server is a replica, which refuses writes',
      'name the master in the URL, or use redis+sentinel: with the Sentinels, which know it',
    )

  const [appendonly, save, appendfsync] = ['appendonly', 'save', 'appendfsync'].map(name =>
    settings.get(name),
  )
  if (appendonly === 'no' && save !== undefined)
    add(
      save === '' ? 'no-persistence' : 'snapshots-only',
      LOSS,
      `a server that crashes loses ${save === '' ? 'all its data' : 'all writes after its last snapshot'}: values, ` +
        'and locks, which it then grants to others while their holders still work',
      'set appendonly yes and appendfsync always, in redis.conf or with CONFIG SET',
    )
  if (appendonly === 'yes' && appendfsync !== undefined && appendfsync !== 'always')
    add(
      'late-fsync',
      LOSS,
      `appendfsync is ${appendfsync}, so a power cut loses the writes ` +
        (appendfsync === 'everysec' ? 'of the last seconds' : 'that the system had not flushed yet'),
      'set appendfsync always, in redis.conf or with CONFIG SET',
    )

  const [limit, policy] = [settings.get('maxmemory') ?? '0', settings.get('maxmemory-policy') ?? 'noeviction']
  if (limit !== '0' && policy !== 'noeviction')
    add(
      'eviction',
      LOSS,
      `a server that reaches maxmemory evicts keys (maxmemory-policy ${policy}), including those of locks that are held`,
      'set maxmemory-policy noeviction, in redis.conf or with CONFIG SET, or use a separate server for locks',
    )

  const count = `the server has ${replicas} replicas and minReplicas is ${minReplicas}`
  if (role === 'master' && replicas > minReplicas)
    add(
      'asynchronous-replicas',
      LOSS,
      `${count}, so a replica that becomes master may lack the newest grants and commits`,
      `set minReplicas=${replicas} in the URL: the number of replicas, because any of them may become master`,
    )
  if (role === 'master' && replicas < minReplicas)
    add(
      'too-few-replicas',
      [],
      `${count}, so no write can be confirmed`,
      'start more replicas, or lower minReplicas in the URL',
    )

  const clock = clockFindings(
    facts,
    ['P2', 'P11'],
    gap => `the server's clock is ${gap}, and leases expire early or late when it is corrected`,
  )
  return [...findings, ...clock]
}
