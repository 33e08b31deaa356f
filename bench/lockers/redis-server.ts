import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startRedis } from '../../test/servers/redis.js'

/** Starts a server that the processes of one subject find by their folder; gives what ends it. */
export async function redisSupport(folder: string): Promise<() => Promise<void>> {
  const server = await startRedis()
  await writeFile(file(folder), server.url)
  return () => server.stop()
}

/** The URL of the server of this folder. */
export function redisUrl(folder: string): Promise<string> {
  return readFile(file(folder), 'utf8')
}

function file(folder: string): string {
  return join(folder, 'redis-url')
}
