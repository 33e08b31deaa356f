import type { Engine } from '../engine/contract.js'
import type { Diagnosis } from '../engine/diagnosis.js'
import { companion } from '../base/companion.js'
import { InvalidArgumentError, shown } from '../base/errors.js'
import { checkSpaces, checkUrl } from '../engine/kit/check-url.js'
import type { ExistingHazelcast, ExistingRedisQuorum } from './existing-engine.js'
import type { ExistingPostgres } from './postgres/existing-postgres.js'
import type { ExistingRedis } from './redis/redis-options.js'

/** A source that `open` takes instead of a URL, except an engine of the caller. */
export type Existing = ExistingRedis | ExistingRedisQuorum | ExistingHazelcast | ExistingPostgres

/** An engine that `open` knows. Its code is loaded on demand. */
interface Registered {
  /** The schemes of its URLs, the usual one first. */
  readonly schemes: readonly string[]
  /** The option of `open` that selects this engine instead of a URL. */
  readonly option?: string
  /** @throws InvalidArgumentError, UnavailableError */
  open(source: unknown): Promise<Engine>
  /** Looks for settings that weaken a promise. @throws InvalidArgumentError, UnavailableError */
  diagnose?(url: string): Promise<Diagnosis>
}

const engines: readonly Registered[] = [
  {
    schemes: ['memory'],
    open: async url => (await import('./memory/memory-engine.js')).openMemory(url as string),
  },
  {
    schemes: ['file'],
    open: async url => (await import('./file/open.js')).openFile(url as string),
    diagnose: async url => (await import('./file/diagnose.js')).diagnoseFile(url),
  },
  {
    schemes: [
      'redis',
      'rediss',
      'valkey',
      'valkeys',
      'redis+unix',
      'redis+sentinel',
      'rediss+sentinel',
      'redis+cluster',
      'rediss+cluster',
    ],
    option: 'redis',
    open: async source => (await import('./redis/open.js')).openRedis(source as string | ExistingRedis),
    diagnose: async url => (await import('./redis/diagnose.js')).diagnoseRedis(url),
  },
  {
    schemes: ['redis-quorum', 'rediss-quorum'],
    option: 'redisQuorum',
    open: async source => (await redisQuorum()).openRedisQuorum(source as string | ExistingRedisQuorum),
    diagnose: async url => (await redisQuorum()).diagnoseRedisQuorum(url),
  },
  {
    schemes: ['zookeeper', 'zookeeper+tls'],
    open: async url => (await zookeeper()).openZooKeeper(url as string),
    diagnose: async url => (await zookeeper()).diagnoseZooKeeper(url),
  },
  {
    schemes: ['hazelcast'],
    option: 'hazelcast',
    open: async source => (await hazelcast()).openHazelcast(source as string | ExistingHazelcast),
    diagnose: async url => (await hazelcast()).diagnoseHazelcast(url),
  },
  {
    schemes: ['postgres', 'postgresql'],
    option: 'postgres',
    open: async source =>
      (await import('./postgres/open.js')).openPostgres(source as string | ExistingPostgres),
    diagnose: async url => (await import('./postgres/diagnose.js')).diagnosePostgres(url),
  },
]

const zookeeper = () =>
  companion('ZooKeeper', 'signalbox-zookeeper/engine', import('signalbox-zookeeper/engine'))
const redisQuorum = () =>
  companion('a Redis quorum', 'signalbox-redis-quorum', import('signalbox-redis-quorum'))
const hazelcast = () => companion('Hazelcast', 'signalbox-hazelcast', import('signalbox-hazelcast'))

/**
 * Returns the engine that a URL or an option of `open` names.
 * @throws InvalidArgumentError if there is none, or if the form of the URL is invalid
 */
export function registeredFor(source: string | Existing): Registered {
  const found = typeof source === 'string' ? byScheme(source) : byOption(source)
  if (found) {
    if (typeof source === 'string') {
      if (found.diagnose && !source.startsWith('file:')) checkUrl(source)
      else checkSpaces(source)
    }
    return found
  }
  const usual = engines.map(({ schemes }) => `${schemes[0]!}:`)
  const last = usual.pop()!
  throw new InvalidArgumentError(
    typeof source === 'string'
      ? `the source to open must be a URL with ${usual.join(', ')} or ${last}, not ${shown(beginningOf(source))}`
      : `the source to open must be a URL like 'memory:', { redis: client }, { redisQuorum: [client, …] }, { hazelcast: config }, { postgres: client } or { engine }, not ${shown(source)}`,
  )
}

/** A word or a path, without characters that separate passwords in connection strings. */
const WORD = /^[^@:=,;\s]*$/
/** The text before the first colon, if it can't contain a password. */
const SCHEME = /^\s*[^@:=,;\s]*:/

/** Returns the part of an invalid URL that can't contain a password. */
function beginningOf(text: string): string {
  return WORD.test(text) ? text : `${SCHEME.exec(text)?.[0] ?? ''}…`
}

function byScheme(url: string): Registered | undefined {
  const scheme = /^([a-z][a-z0-9+-]*):/.exec(url)?.[1]
  return engines.find(({ schemes }) => schemes.includes(scheme!))
}

function byOption(source: unknown): Registered | undefined {
  if (typeof source !== 'object' || source === null) return undefined
  const [first, second] = engines.filter(({ option }) => option !== undefined && option in source)
  if (!second) return first
  throw new InvalidArgumentError(
    `the source to open must have either ${first!.option!} or ${second.option!}, not both`,
  )
}
