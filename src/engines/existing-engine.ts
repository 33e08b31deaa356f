import { InvalidArgumentError, shown } from '../base/errors.js'
import type { Engine } from '../engine/contract.js'
import { checkOptions } from '../base/options.js'
import type { RedisOptions } from './redis/redis-options.js'

/** A custom engine for `open`. */
export interface ExistingEngine {
  /** Must not have joined yet: each box needs an engine of its own. */
  readonly engine: Engine
}

/**
 * Opens a box with a configuration of the client, for settings that a URL can't have: TLS, authentication, discovery.
 */
export interface ExistingHazelcast {
  /**
   * A `ClientConfig` of `hazelcast-client`, whose types may not be installed. The box creates a new client from it when
   * one has died, because a client that was disconnected for too long never reconnects.
   */
  readonly hazelcast: object
  /** The map whose keys are locked; default `signalbox`. */
  readonly map?: string | undefined
}

/** Existing clients, one for each of several independent servers. Needs the package `signalbox-redis-quorum`. */
export interface ExistingRedisQuorum extends Omit<RedisOptions, 'layout'> {
  /**
   * At least three, each a `Redis` of ioredis or a client of node-redis for a server that is independent of the others.
   * The engine never closes them. It sends commands over clients of ioredis, and opens further connections like those
   * of each client.
   */
  readonly redisQuorum: readonly object[]
}

/** The methods that `open` calls. An engine may have more. */
const METHODS = ['join', 'submit', 'leave'] as const

/**
 * Returns the given engine.
 * @throws InvalidArgumentError if it lacks a property or method that every engine has
 */
export function existingEngine(source: { readonly engine: unknown }): Engine {
  checkOptions(source, ['engine'])
  const { engine } = source
  if (typeof engine !== 'object' || engine === null || Array.isArray(engine)) throw unfit(shown(engine))
  const parts = engine as Partial<Record<keyof Engine, unknown>>
  if (typeof parts.name !== 'string') throw unfit(`one whose name is ${shown(parts.name)}`)
  const { guarantees } = parts
  if (typeof guarantees !== 'object' || guarantees === null)
    throw unfit(`one whose guarantees are ${shown(guarantees)}`)
  for (const method of METHODS)
    if (typeof parts[method] !== 'function') throw unfit(`one whose ${method} is ${shown(parts[method])}`)
  return engine as Engine
}

function unfit(found: string): InvalidArgumentError {
  return new InvalidArgumentError(
    `engine must be an object with name, guarantees, join, submit and leave, not ${found}`,
  )
}
