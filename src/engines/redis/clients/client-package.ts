import { UnavailableError } from '../../../errors.js'
import type { Address, Connect } from './connection.js'
import { ioredisConnect, type IoredisClass } from './ioredis-connection.js'
import type { Login } from './login.js'
import { nodeRedisConnect, OBEDIENT, type CreateNodeRedisClient } from './node-redis-connection.js'

/** A client package, as what makes connections. */
export type ClientPackage = (address: Address, login: Login) => Connect

/** ioredis, by its class `Redis`. */
export function ioredisPackage(Redis: IoredisClass): ClientPackage {
  return (address, login) => ioredisConnect(Redis, address, login)
}

/** node-redis, by its `createClient`. */
export function nodeRedisPackage(createClient: CreateNodeRedisClient): ClientPackage {
  // It writes a class with all commands for each client whose options differ from those of the last one, which takes
  // tens of milliseconds. Duplicates share the class.
  const pattern = createClient(OBEDIENT)
  return (address, login) => nodeRedisConnect(options => pattern.duplicate(options), address, login)
}

/**
 * The client package that is installed. Where both are, node-redis is taken: it needs about two thirds of the processor
 * time of ioredis for a call.
 * @throws UnavailableError that names them when neither is
 */
export async function installedPackage(): Promise<ClientPackage> {
  const nodeRedis = await ifInstalled(import('redis'))
  if (nodeRedis !== undefined) return nodeRedisPackage(nodeRedis.createClient)
  const ioredis = await ifInstalled(import('ioredis'))
  if (ioredis !== undefined) return ioredisPackage(ioredis.Redis)
  throw new UnavailableError('Redis needs a client package: npm install redis (or ioredis)')
}

async function ifInstalled<Package>(loading: Promise<Package>): Promise<Package | undefined> {
  try {
    return await loading
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw new UnavailableError('The Redis client package that is installed cannot be loaded', {
      cause: error,
    })
  }
}
