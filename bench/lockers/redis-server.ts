import { startRedis } from '../../test/support/servers/redis.js'
import { tellAddress } from './address-file.js'

/** Starts a server and writes its URL for the processes of one subject. Returns a function that stops it. */
export async function redisSupport(folder: string): Promise<() => Promise<void>> {
  const server = await startRedis()
  await tellAddress(folder, server.url)
  return () => server.stop()
}
