import { installedPackage } from './clients/installed-package.js'
import type { RedisLink } from './clients/redis-link.js'
import { clusterUrl } from './cluster-node.js'
import { linkTo } from './links.js'
import { Names } from './names.js'
import type { RedisEngineOptions } from './redis-engine.js'
import { groupedBy } from '../../grouped.js'
import { parseQuorumUrl } from './quorum/quorum-url.js'
import { parseRedisUrl } from './redis-url.js'
import { UnavailableError } from '../../errors.js'
import { clockFact } from '../../engine/kit/clock-findings.js'
import type { Diagnosis, Finding } from '../../engine/diagnosis.js'
import { redisFacts, type RedisFacts } from './diagnosed-facts.js'
import { redisFindings } from './diagnosed-findings.js'

/**
 * Looks at each Redis server that a URL means: one, the master of Sentinels, all masters of a cluster, all of a quorum.
 * @throws UnavailableError when a server can't be reached that is not one of a quorum.
 */
export async function diagnoseRedis(url: string): Promise<Diagnosis> {
  const isQuorum = /^rediss?-quorum:/.test(url)
  const servers = isQuorum ? await lookAtMany(parseQuorumUrl(url).servers) : await lookAtOne(url)
  return { facts: servers.flatMap(({ facts }) => facts), findings: toldOnce(servers) }
}

/** A server and what it says. */
interface Seen extends Diagnosis {
  readonly name: string
}

/** What is so of several servers is told once; which ones it is about is said where there are several. */
function toldOnce(servers: readonly Seen[]): Finding[] {
  const all = servers.flatMap(({ name, findings }) => findings.map(finding => ({ name, finding })))
  const told = groupedBy(all, ({ finding: { id, how } }) => `${id} ${how}`)
  return [...told.values()].map(same => {
    const { finding } = same[0]!
    const names = same.map(({ name }) => name)
    if (servers.length === 1 || names.every(name => finding.how.includes(name))) return finding
    return { ...finding, how: `${names.join(', ')}: ${finding.how}` }
  })
}

/** Of a quorum some may be away. @throws when all are, and what is no outage */
async function lookAtMany(urls: readonly string[]): Promise<Seen[]> {
  let outages = 0
  const seen = urls.map(async url => {
    try {
      return await lookAtOne(url)
    } catch (error) {
      if (!(error instanceof UnavailableError) || ++outages === urls.length) throw error
      return [{ name: parseRedisUrl(url).name, facts: [], findings: [absent(error)] }]
    }
  })
  return (await Promise.all(seen)).flat()
}

function absent({ message }: UnavailableError): Finding {
  return {
    id: 'server-down',
    promises: [],
    how: `${message}, so fewer others may fail`,
    mend: 'start it, or take it out of the URL',
  }
}

async function lookAtOne(url: string): Promise<Seen[]> {
  const place = parseRedisUrl(url)
  const link = linkTo(
    place,
    await installedPackage(),
  )({ message: () => undefined, resubscribed: () => undefined })
  try {
    await link.connect()
    return await lookThrough(link, place.options)
  } finally {
    await link.close()
  }
}

async function lookThrough(link: RedisLink, { minReplicas, prefix }: RedisEngineOptions): Promise<Seen[]> {
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
    mend: `open ${url}`,
  }
}

function factsOf(server: RedisFacts): string[] {
  const { name, version, role, replicas, refusals } = server
  return [
    `${name}: Redis ${version ?? 'of a version that it does not tell'}, ${role ?? 'role unknown'}, ${replicas} ` +
      `replicas${clockFact(server)}`,
    ...refusals.map(refusal => `${name}: can't be looked at: ${refusal}`),
  ]
}
