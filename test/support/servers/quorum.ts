import { systemClock } from '../../../src/base/clock.js'
import type { NumberClock } from '../../../src/engines/redis/quorum/number-clock.js'
import { QuorumEngine } from '../../../src/engines/redis/quorum/quorum-engine.js'
import type { VotingEngine } from '../../../src/engines/redis/quorum/voter.js'
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
  /** Wraps the engine of one server. */
  readonly between?: (engine: VotingEngine, index: number) => VotingEngine
}

/** Opens a quorum engine with options that a URL lacks. */
export async function quorumEngine(
  members: readonly RedisServer[],
  { prefix = '', numbers, between = engine => engine }: QuorumEngineOptions = {},
): Promise<QuorumEngine> {
  const client = await installedPackage()
  const engines = members.map(({ url }, index) => {
    const { options, ...place } = parseRedisUrl(url)
    const engine = new RedisEngine(linkTo({ ...place, options }, client), { ...options, prefix }, systemClock)
    return between(engine, index)
  })
  return new QuorumEngine({
    name: quorumUrl(members),
    engines,
    clock: systemClock,
    ...(numbers && { numbers }),
  })
}
