import { open, type Box } from 'signalbox'
import { redisSupport } from '../lockers/redis-server.js'
import type { Work } from '../work.js'
import { CALLERS, permits, type Permits } from './permits.js'

/** Number of users. Each has a limit that it does not reach. */
const USERS = 10_000
const LIMIT = 1000
const TTL = 1000

function requests(storage: ThrottlerStorage, end: () => Promise<unknown>): Permits {
  let number = 0
  return {
    take: () => storage.increment(`user ${number++ % USERS}`, TTL, LIMIT, TTL, 'default'),
    end,
  }
}

/** A variable, so that the type check does not resolve the name to the built package. */
const ADAPTER: string = 'signalbox-nestjs'

interface Adapter {
  readonly SignalboxThrottlerStorage: new (box: Box) => ThrottlerStorage
}

async function signalbox(source: string): Promise<Permits> {
  const { SignalboxThrottlerStorage } = (await import(ADAPTER)) as Adapter
  const box = await open(source)
  return requests(new SignalboxThrottlerStorage(box), () => box.close())
}

const OWN = 'signalbox, Redis'
const OWN_MEMORY = 'signalbox, memory'
const NEST_LAB = '@nest-lab/throttler-storage-redis'
const NEST = '@nestjs/throttler, memory'

/** Storages of `@nestjs/throttler`. */
export const throttlerStorages: Work = {
  part: 'limits',
  name: `requests of ${USERS} users, ${CALLERS} at a time, by storages of @nestjs/throttler`,
  seconds: 1,
  subjects: [
    permits(OWN, redisSupport, signalbox),
    permits(NEST_LAB, redisSupport, async url => {
      const { ThrottlerStorageRedisService } = await import('@nest-lab/throttler-storage-redis')
      const storage = new ThrottlerStorageRedisService(url)
      return requests(storage, async () => storage.onModuleDestroy())
    }),
    permits(OWN_MEMORY, redisSupport, () => signalbox('memory:')),
    permits(NEST, redisSupport, async () => {
      const { ThrottlerStorageService } = await import('@nestjs/throttler')
      const storage = new ThrottlerStorageService()
      return requests(storage, async () => storage.onApplicationShutdown())
    }),
  ],
  comparisons: [
    { measure: 'opsPerSecond', of: OWN, to: NEST_LAB },
    { measure: 'opsPerSecond', of: OWN_MEMORY, to: NEST },
  ],
}
