import { Box, type BoxOptions } from './box.js'
import { systemClock } from './clock.js'
import type { Engine } from './engines/engine.js'
import { givenEngine, type GivenEngine } from './engines/given-engine.js'
import type { GivenHazelcast } from './engines/hazelcast/given-hazelcast.js'
import type { GivenRedisQuorum } from './engines/redis-quorum/open.js'
import type { GivenRedis } from './engines/redis/redis-options.js'
import { InvalidArgumentError, shown } from './errors.js'

/**
 * Opens a box on the engine that the URL names:
 * - `memory:` for this box alone, `memory:name` shared by all boxes of the thread that name it;
 * - `file:./dir` for all processes of this machine that open the same folder. `?durable=false` lets commits return
 *   before they are on the disk;
 * - `redis://user:password@host:6379/0` for all that reach the same Redis server; `rediss:` over TLS, `redis+unix:` at a
 *   socket, `redis+sentinel://host,host/name?db=0` behind Sentinels, `redis+cluster://host,host` on a Cluster. The query
 *   takes `prefix`, `minReplicas` and `layout`, as {@link GivenRedis} does;
 * - `redis-quorum://host,host,host` for locks, and locks only, that a majority of independent Redis servers gives;
 *   `rediss-quorum:` over TLS;
 * - `zookeeper://user:password@host:2181,host,host/path` for all that reach the same ensemble and name the same node, which
 *   is `/signalbox` if none is named. `?sessionTimeout=10s` is how long a session outlives silence, `?acl=creator` keeps
 *   others than the named user out; `zookeeper+tls:` over TLS;
 * - `hazelcast://user:password@host:5701,host/cluster` for all that reach the same cluster, which is `dev` if none is
 *   named, and name the same `?map=signalbox`, whose keys are locked.
 *
 * Or on Redis over clients that are there already: `open({ redis: client, prefix: 'app:' })`, or
 * `open({ redisQuorum: [client, client, client] })`; on Hazelcast by a configuration of its client: `open({ hazelcast: config })`;
 * on an engine of one's own, `open({ engine })`.
 *
 * An engine's code is loaded only when it is asked for.
 * @throws InvalidArgumentError when the URL or an option is unfit; UnavailableError when the engine can't be reached or
 * a package that it needs is missing.
 */
export async function open(
  source: string | GivenRedis | GivenRedisQuorum | GivenHazelcast | GivenEngine,
  options?: BoxOptions,
): Promise<Box> {
  return Box.join(await engineFor(source), systemClock, options)
}

async function engineFor(source: Parameters<typeof open>[0]): Promise<Engine> {
  if (typeof source === 'object' && source !== null) {
    if ('redis' in source) return (await import('./engines/redis/open.js')).openRedis(source)
    if ('redisQuorum' in source)
      return (await import('./engines/redis-quorum/open.js')).openRedisQuorum(source)
    if ('engine' in source) return givenEngine(source)
    if ('hazelcast' in source) return (await import('./engines/hazelcast/open.js')).openHazelcast(source)
  }
  if (typeof source !== 'string')
    throw new InvalidArgumentError(
      `open takes a URL like 'memory:', { redis: client }, { redisQuorum: [client, …] }, { hazelcast: config } or { engine }, not ${shown(source)}`,
    )
  const url = source
  const scheme = /^([a-z][a-z0-9+-]*):/.exec(url)?.[1]
  switch (scheme) {
    case 'memory':
      return (await import('./engines/memory/open.js')).openMemory(url)
    case 'file':
      return (await import('./engines/file/open.js')).openFile(url)
    case 'redis':
    case 'rediss':
    case 'redis+unix':
    case 'redis+sentinel':
    case 'rediss+sentinel':
    case 'redis+cluster':
    case 'rediss+cluster':
      return (await import('./engines/redis/open.js')).openRedis(url)
    case 'redis-quorum':
    case 'rediss-quorum':
      return (await import('./engines/redis-quorum/open.js')).openRedisQuorum(url)
    case 'zookeeper':
    case 'zookeeper+tls':
      return (await import('./engines/zookeeper/open.js')).openZooKeeper(url)
    case 'hazelcast':
      return (await import('./engines/hazelcast/open.js')).openHazelcast(url)
    default:
      throw new InvalidArgumentError(
        `open takes a URL with memory:, file:, redis:, redis-quorum:, zookeeper: or hazelcast:, not ${shown(url)}`,
      )
  }
}
