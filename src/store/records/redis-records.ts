import { detectClient } from '../../engines/redis/clients/detect-client.js'
import { InvalidArgumentError, shown } from '../../base/errors.js'
import { checkOptions } from '../../base/options.js'
import type { FoundRecord, Records } from './records.js'

/** Options of {@link redisRecords}. */
export interface RedisRecordsOptions {
  /** The prefix of every key. Default: `signalbox:records:`. */
  readonly prefix?: string | undefined
}

// A script is sent to the master, even by clients that send GET to replicas. Each one returns the number of its call.
const GET = `return {ARGV[1], redis.call('GET', KEYS[1])}`

/** Compares the whole text, so that a key is a plain string, and a version is never used for another text. */
const COMPARE_AND_SET = `
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[2] then return {ARGV[1], 0} end
if ARGV[4] == '' then redis.call('SET', KEYS[1], ARGV[3])
else redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4]) end
return {ARGV[1], 1}`

let calls = 0

/**
 * Keeps records as plain strings in Redis, by the caller's client or cluster of ioredis or node-redis.
 * @throws InvalidArgumentError
 */
export function redisRecords(redis: object, options: RedisRecordsOptions = {}): Records<string> {
  checkOptions(options, ['prefix'])
  const { prefix = 'signalbox:records:' } = options
  if (typeof prefix !== 'string')
    throw new InvalidArgumentError(`prefix must be a string, not ${shown(prefix)}`)
  const { send, keyPrefix } = commandsOver(redis)
  return new RedisRecords(send, keyPrefix + prefix)
}

type Send = (key: string, args: string[]) => Promise<unknown>

/** The clusters of both packages, as far as they are needed: both find the node by the key. */
interface RoutingCluster {
  call?(...args: string[]): Promise<unknown>
  sendCommand(key: string, isReadonly: boolean, args: string[]): Promise<unknown>
}

function commandsOver(redis: object): { send: Send; keyPrefix: string } {
  const { kind, client } = detectClient(redis)
  if (kind === 'server') return { send: (_key, args) => client.send(args), keyPrefix: client.keyPrefix }
  const cluster = redis as RoutingCluster
  // A cluster of ioredis adds its prefix to keys itself.
  if (cluster.call) return { send: (_key, args) => cluster.call!(...args), keyPrefix: '' }
  return { send: (key, args) => cluster.sendCommand(key, false, args), keyPrefix: client.keyPrefix }
}

class RedisRecords implements Records<string> {
  readonly #send: Send
  readonly #prefix: string

  constructor(send: Send, prefix: string) {
    this.#send = send
    this.#prefix = prefix
  }

  async get(key: string): Promise<FoundRecord<string> | undefined> {
    const text = await this.#run(GET, key)
    return typeof text === 'string' ? { text, version: text } : undefined
  }

  async compareAndSet(
    key: string,
    version: string | undefined,
    text: string,
    keep: number | undefined,
  ): Promise<string | undefined> {
    const isWritten = await this.#run(COMPARE_AND_SET, key, version ?? '', text, keep ? String(keep) : '')
    return isWritten === 1 ? text : undefined
  }

  /** @throws Error when the client returns the reply to another command, as node-redis before 6.2 may after a loss */
  async #run(script: string, key: string, ...args: string[]): Promise<unknown> {
    const full = this.#prefix + key
    const call = String(++calls)
    const reply = await this.#send(full, ['EVAL', script, '1', full, call, ...args])
    if (!Array.isArray(reply) || String(reply[0]) !== call)
      throw new Error('the client returned the reply to another command; connect it again')
    return reply[1]
  }
}
