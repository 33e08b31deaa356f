import { installedPackage } from '../../engines/redis/clients/client-package.js'
import type { RedisLink } from '../../engines/redis/clients/redis-link.js'
import { linkTo } from '../../engines/redis/open.js'
import { parseQuorumUrl } from '../../engines/redis-quorum/quorum-url.js'
import { parseRedisUrl } from '../../engines/redis/redis-url.js'
import { UnavailableError } from '../../errors.js'
import type { Diagnosis, Finding } from './finding.js'
import { redisFacts, type RedisFacts } from './redis-facts.js'
import { redisFindings } from './redis-findings.js'
import { shortDuration } from '../short-duration.js'

/**
 * Looks at each Redis server that a URL means: one, the master of Sentinels, all masters of a cluster, all of a quorum.
 * @throws UnavailableError when a server can't be reached that is not one of a quorum.
 */
export async function lookAtRedis(url: string): Promise<Diagnosis> {
  const isQuorum = /^rediss?-quorum:/.test(url)
  const diagnoses = isQuorum ? await lookAtMany(parseQuorumUrl(url).servers) : [await lookAtOne(url)]
  const findings = new Map<string, Finding>()
  // What is so everywhere is told once.
  for (const { findings: some } of diagnoses) for (const finding of some) findings.set(finding.id, finding)
  return { facts: diagnoses.flatMap(({ facts }) => facts), findings: [...findings.values()] }
}

/** Of a quorum some may be away. @throws when all are, and what is no outage */
async function lookAtMany(urls: readonly string[]): Promise<Diagnosis[]> {
  let outages = 0
  return Promise.all(
    urls.map(async url => {
      try {
        return await lookAtOne(url)
      } catch (error) {
        if (!(error instanceof UnavailableError) || ++outages === urls.length) throw error
        return { facts: [], findings: [absent(error)] }
      }
    }),
  )
}

function absent({ message }: UnavailableError): Finding {
  return {
    id: 'server-down',
    promises: [],
    how: `${message}, so fewer others may fail`,
    mend: 'start it, or take it out of the URL',
  }
}

async function lookAtOne(url: string): Promise<Diagnosis> {
  const place = parseRedisUrl(url)
  const link = linkTo(
    place,
    await installedPackage(),
  )({ message: () => undefined, resubscribed: () => undefined })
  try {
    await link.connect()
    return await lookThrough(link, place.options.minReplicas)
  } finally {
    await link.close()
  }
}

async function lookThrough(link: RedisLink, minReplicas: number): Promise<Diagnosis> {
  const servers = await Promise.all((await link.masters()).map(redisFacts))
  return {
    facts: servers.flatMap(server => factsOf(link.name, server)),
    findings: servers.flatMap(server => redisFindings(server, minReplicas)),
  }
}

function factsOf(name: string, { version, role, replicas, ahead, refusals }: RedisFacts): string[] {
  const clock =
    ahead === undefined ? '' : `, clock ${shortDuration(Math.abs(ahead))} ${ahead < 0 ? 'behind' : 'ahead'}`
  return [
    `${name}: Redis ${version ?? 'of a version that it does not tell'}, ${role ?? 'role unknown'}, ${replicas} replicas${clock}`,
    ...refusals.map(refusal => `${name}: can't be looked at: ${refusal}`),
  ]
}
