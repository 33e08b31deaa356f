import { systemClock } from '../../clock.js'
import { UnavailableError } from '../../errors.js'
import { DEFAULT_PATIENCE, type Address, type Connect } from './clients/connection.js'
import { ioredisConnect } from './clients/ioredis-connection.js'
import type { Login } from './clients/login.js'
import { ServerLink } from './clients/server-link.js'
import { RedisEngine } from './redis-engine.js'
import { parseRedisUrl } from './redis-url.js'

/** The engine of a Redis URL. @throws InvalidArgumentError when the URL is unfit; UnavailableError without a client. */
export async function openRedis(url: string): Promise<RedisEngine> {
  const { addresses, login, name, options } = parseRedisUrl(url)
  const connect = await connectorOfPackage()
  return new RedisEngine(
    listener =>
      new ServerLink({
        name,
        connect: connect(addresses[0]!, login),
        listener,
        clock: systemClock,
        patience: DEFAULT_PATIENCE,
      }),
    options,
    systemClock,
  )
}

async function connectorOfPackage(): Promise<(address: Address, login: Login) => Connect> {
  try {
    const { Redis } = await import('ioredis')
    return (address, login) => ioredisConnect(Redis, address, login)
  } catch (cause) {
    throw new UnavailableError('Redis needs a client package: npm install ioredis', { cause })
  }
}
