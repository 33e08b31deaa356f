import { installedPackage } from './clients/installed-package.js'
import type { RedisLink } from './clients/redis-link.js'
import { clusterUrl } from './cluster-node.js'
import { linkTo } from './links.js'
import { Names } from './names.js'
import type { RedisEngineOptions } from './redis-engine.js'
import { groupedBy } from '../../base/grouped.js'
import { parseQuorumUrl } from './quorum/quorum-url.js'
import { parseRedisUrl } from './redis-url.js'
import { UnavailableError } from '../../base/errors.js'
import { clockFact } from '../../engine/kit/clock-findings.js'
import type { Diagnosis, Finding } from '../../engine/diagnosis.js'
import { redisFacts, type RedisFacts } from './diagnosed-facts.js'
import { redisFindings } from './diagnosed-findings.js'

/**
 * Diagnoses each Redis server of a URL: one, the master of Sentinels, all masters of a cluster, or all of a quorum.
 * @throws UnavailableError when a server can't be reached; for a quorum, when none can.
 */
export async function diagnoseRedis(url: string): Promise<Diagnosis> {
  const isQuorum = /^rediss?-quorum:/.test(url)
  const servers = isQuorum ? await diagnoseQuorum(parseQuorumUrl(url).servers) : await diagnosePlace(url)
  return { facts: servers.flatMap(({ facts }) => facts), findings: merged(servers) }
}

interface ServerDiagnosis extends Diagnosis {
  readonly name: string
}

/** Merges equal findings of several servers into one, which names the servers. */
function merged(servers: readonly ServerDiagnosis[]): Finding[] {
  const all = servers.flatMap(({ name, findings }) => findings.map(finding => ({ name, finding })))
  const groups = groupedBy(all, ({ finding: { id, how } }) => `${id} ${how}`)
  return [...groups.values()].map(same => {
    const { finding } = same[0]!
    const names = same.map(({ name }) => name)
    if (servers.length === 1 || names.every(name => finding.how.includes(name))) return finding
    return { ...finding, how: `${names.join(', ')}: ${finding.how}` }
  })
}

/** Some servers of a quorum may be unreachable. @throws when all are, and any error other than an outage. */
async function diagnoseQuorum(urls: readonly string[]): Promise<ServerDiagnosis[]> {
  let outages = 0
  const seen = urls.map(async url => {
    try {
      return await diagnosePlace(url)
    } catch (error) {
      if (!(error instanceof UnavailableError) || ++outages === urls.length) throw error
      return [{ name: parseRedisUrl(url).name, facts: [], findings: [serverDown(error)] }]
    }
  })
  return (await Promise.all(seen)).flat()
}

function serverDown({ message }: UnavailableError): Finding {
  return {
    id: 'server-down',
    promises: [],
    how: `${message}, so the quorum tolerates fewer further failures`,
    fix: 'start it, or remove it from the URL',
  }
}

async function diagnosePlace(url: string): Promise<ServerDiagnosis[]> {
  const place = parseRedisUrl(url)
  const link = linkTo(
    place,
    await installedPackage(),
  )({ message: () => undefined, resubscribed: () => undefined })
  try {
    await link.connect()
    return await diagnoseMasters(link, place.options)
  } finally {
    await link.close()
  }
}

async function diagnoseMasters(
  link: RedisLink,
  { minReplicas, prefix }: RedisEngineOptions,
): Promise<ServerDiagnosis[]> {
  const [masters, url] = await Promise.all([
    link.masters(),
    clusterUrl(link, new Names(prefix, link.cluster)),
  ])
  const servers = await Promise.all(masters.map(send => redisFacts(send, link.name, link.cluster)))
  return servers.map(server => ({
    name: server.name,
    facts: factsOf(server),
    findings: [...(url === undefined ? [] : [clusterNode(url)]), ...redisFindings(server, minReplicas)],
  }))
}

function clusterNode(url: string): Finding {
  return {
    id: 'cluster-node',
    promises: [],
    how: 'the server is a node of a Redis Cluster, which refuses commands for several hash slots',
    fix: `open ${url}`,
  }
}

function factsOf(server: RedisFacts): string[] {
  const { name, version, role, replicas, refusals } = server
  return [
    `${name}: Redis ${version ?? '(unknown version)'}, ${role ?? 'role unknown'}, ${replicas} ` +
      `replicas${clockFact(server)}`,
    ...refusals.map(refusal => `${name}: could not be examined: ${refusal}`),
  ]
}
