import { ifInstalled } from '../../../engine/kit/if-installed.js'
import { missingPackage } from '../../../engine/kit/missing-package.js'
import type { ClientPackage } from './connection.js'
import { ioredisPackage } from './ioredis-connection.js'
import { nodeRedisPackage } from './node-redis-connection.js'

/**
 * The client package that is installed. Where both are, node-redis is taken: it needs about two thirds of the processor
 * time of ioredis for a call.
 * @throws MissingPackageError that names them when neither is
 */
export async function installedPackage(): Promise<ClientPackage> {
  const nodeRedis = await ifInstalled(import('redis'), 'Redis')
  if (nodeRedis !== undefined) return nodeRedisPackage(nodeRedis.createClient)
  const ioredis = await ifInstalled(import('ioredis'), 'Redis')
  if (ioredis !== undefined) return ioredisPackage(ioredis.Redis)
  throw missingPackage('Redis needs a client package', ['redis', 'ioredis'])
}
