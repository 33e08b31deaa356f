import { UnavailableError } from '../../../errors.js'
import type { ClientPackage } from './connection.js'
import { ioredisPackage } from './ioredis-connection.js'
import { nodeRedisPackage } from './node-redis-connection.js'

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
