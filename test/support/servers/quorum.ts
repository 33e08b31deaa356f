import { systemClock } from '../../../src/base/clock.js'
import type { NumberClock } from '../../../packages/redis-quorum/src/number-clock.js'
import { QuorumEngine } from '../../../packages/redis-quorum/src/quorum-engine.js'
import type { RedisServer as VotingServer } from 'signalbox/redis'
import { installedPackage } from '../../../src/engines/redis/clients/installed-package.js'
import { linkTo } from '../../../src/engines/redis/links.js'
import { RedisEngine } from '../../../src/engines/redis/redis-engine.js'
import { parseRedisUrl } from '../../../src/engines/redis/redis-url.js'
import type { RedisServer } from './redis.js'

/** Returns one URL for several servers. */
export function quorumUrl(
  members: readonly { readonly host: string; readonly port: number }[],
  query = '',
): string {
  return `redis-quorum://${members.map(({ host, port }) => `${host}:${port}`).join(',')}${query}`
}

export interface QuorumEngineOptions {
  readonly prefix?: string
  /** Proposes the numbers of grants, with a wall clock of its own. */
  readonly numbers?: NumberClock
  /** Wraps one server. */
  readonly between?: (server: VotingServer, index: number) => VotingServer
}

/** Opens a quorum engine with options that a URL lacks. */
export async function quorumEngine(
  members: readonly RedisServer[],
  { prefix = '', numbers, between = server => server }: QuorumEngineOptions = {},
): Promise<QuorumEngine> {
  const client = await installedPackage()
  const servers = members.map(({ url }, index) => {
    const { options, ...place } = parseRedisUrl(url)
    const server = new RedisEngine(linkTo({ ...place, options }, client), { ...options, prefix }, systemClock)
    return between(server, index)
  })
  return new QuorumEngine({
    name: quorumUrl(members),
    servers,
    clock: systemClock,
    ...(numbers && { numbers }),
  })
}
