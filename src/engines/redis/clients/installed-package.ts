import { ifInstalled } from '../../../base/if-installed.js'
import { missingPackage } from '../../../base/missing-package.js'
import type { ClientPackage } from './connection.js'
import { ioredisPackage } from './ioredis-connection.js'
import { nodeRedisPackage } from './node-redis-connection.js'

/**
 * Returns the installed client package. If both are installed, that is node-redis, which needs about two thirds of the
 * processor time of ioredis for a call.
 * @throws MissingPackageError when neither is installed
 */
export async function installedPackage(): Promise<ClientPackage> {
  const nodeRedis = await ifInstalled('redis', import('redis'))
  if (nodeRedis !== undefined) return nodeRedisPackage(nodeRedis.createClient)
  const ioredis = await ifInstalled('ioredis', import('ioredis'))
  if (ioredis !== undefined) return ioredisPackage(ioredis.Redis)
  throw missingPackage('Redis needs a client package', ['redis', 'ioredis'])
}
