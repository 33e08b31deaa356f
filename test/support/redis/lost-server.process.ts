/**
 * Works on Redis over a client package, with connections of its own or with a client that it passes to its boxes. Kills
 * the server, prints `done`, and must then end by itself.
 */
import { Box } from '../../../src/box.js'
import { systemClock } from '../../../src/base/clock.js'
import { linkTo } from '../../../src/engines/redis/links.js'
import { RedisEngine } from '../../../src/engines/redis/redis-engine.js'
import { parseRedisUrl } from '../../../src/engines/redis/redis-url.js'
import { open } from '../../../src/index.js'
import { clientPackages } from './client-packages.js'

const [url, pid, name, way] = process.argv.slice(2)
const { client, connectWith } = clientPackages.find(each => each.name === name)!
const given = way === 'given' ? await client(url!) : undefined

async function openBox(): Promise<Box> {
  if (given) return open({ redis: given.client })
  const place = parseRedisUrl(url!)
  return Box.join(new RedisEngine(linkTo(place, connectWith), place.options, systemClock), systemClock)
}

const box = await openBox()
const other = await openBox()
await box.mutex('held').acquire()
// A failed wait has opened the connection for messages.
await other
  .mutex('held')
  .acquire({ wait: 50 })
  .catch(() => undefined)
process.kill(Number(pid), 'SIGKILL')
// Long enough for several failed attempts to connect.
await new Promise(resolve => setTimeout(resolve, 500))
// The one that received messages stays open; its owner ends an existing client.
await box.close()
given?.close()
console.log('done')
