import { installedPackage } from './clients/installed-package.js'
import { clusterUrl } from './cluster-node.js'
import { linkTo } from './links.js'
import { Names } from './names.js'
import { parseRedisUrl } from './redis-url.js'
import { clockFact } from '../../engine/kit/clock-findings.js'
import { mergedFindings } from '../../engine/kit/merged-findings.js'
import type { Diagnosis, Finding } from '../../engine/diagnosis.js'
import { redisFacts, type RedisFacts } from './diagnosed-facts.js'
import { redisFindings } from './diagnosed-findings.js'

/**
 * Diagnoses each Redis server of a URL: one, the master of Sentinels, or all masters of a cluster.
 * @throws UnavailableError when a server can't be reached.
 */
export async function diagnoseRedis(url: string): Promise<Diagnosis> {
  const place = parseRedisUrl(url)
  const makeLink = linkTo(place, await installedPackage())
  const link = makeLink({ message: () => undefined, resubscribed: () => undefined })
  try {
    await link.connect()
    const { minReplicas, prefix } = place.options
    const url = await clusterUrl(link, new Names(prefix, link.cluster))
    const facts = (await link.masters()).map(send => redisFacts(send, link.name, link.cluster))
    const servers = (await Promise.all(facts)).map(server => ({
      name: server.name,
      facts: factsOf(server),
      findings: [...(url === undefined ? [] : [clusterNode(url)]), ...redisFindings(server, minReplicas)],
    }))
    return { facts: servers.flatMap(({ facts }) => facts), findings: mergedFindings(servers) }
  } finally {
    await link.close()
  }
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
