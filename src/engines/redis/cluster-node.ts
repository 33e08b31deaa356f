import { RedisReplyError } from './clients/connection.js'
import type { RedisLink } from './clients/redis-link.js'
import type { Names } from './names.js'

/**
 * Returns the URL to open instead if a link to one server leads to a node of a Redis Cluster, which rejects calls with
 * keys in several hash slots. Otherwise, and if the server gives no clear answer, returns undefined.
 */
export async function clusterUrl(link: RedisLink, names: Names): Promise<string | undefined> {
  if (link.cluster) return undefined
  const { numbers, queues } = names.group('')
  try {
    await link.command('', ['EVAL', 'return 0', '2', numbers, queues])
    return undefined
  } catch (error) {
    if (!(error instanceof RedisReplyError && ['CROSSSLOT', 'MOVED'].includes(error.code))) return undefined
    const [, scheme = 'redis', host = 'host:port'] = /^(rediss?):\/\/([^/]+)/.exec(link.name) ?? []
    return `${scheme}+cluster://${host}`
  }
}
