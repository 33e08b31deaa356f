import { Box } from '../../../src/box.js'
import { systemClock } from '../../../src/base/clock.js'
import { linkTo } from '../../../src/engines/redis/links.js'
import { RedisEngine } from '../../../src/engines/redis/redis-engine.js'
import type { RedisOptions } from '../../../src/engines/redis/redis-options.js'
import { parseRedisUrl } from '../../../src/engines/redis/redis-url.js'
import { open } from '../../../src/open.js'
import { clientPackages, type TestedPackage } from './client-packages.js'

/** A box, and the client that was passed to it. Disposing of it closes both. */
export interface OpenBox extends AsyncDisposable {
  readonly box: Box
}

/** A way for a box to talk to a server. */
export interface BoxWay {
  readonly name: string
  /** @param options as the query of a URL has them */
  open(url: string, options?: RedisOptions): Promise<OpenBox>
}

/** Returns every way for a box to talk to a server by a package. */
function waysOf({ name, connectWith, client, protocols }: TestedPackage): BoxWay[] {
  return [
    {
      name: `${name}, connections of its own`,
      async open(url, more) {
        const { options, ...place } = parseRedisUrl(url)
        const link = linkTo({ ...place, options }, connectWith)
        const box = await Box.join(new RedisEngine(link, { ...options, ...more }, systemClock), systemClock)
        return { box, [Symbol.asyncDispose]: () => box.close() }
      },
    },
    ...protocols.map((resp): BoxWay => ({
      name: `${name}, an existing client, RESP${resp}`,
      async open(url, more) {
        const user = await client(url, resp)
        const box = await open({ redis: user.client, ...more })
        return {
          box,
          async [Symbol.asyncDispose]() {
            await box.close()
            user.close()
          },
        }
      },
    })),
  ]
}

/** Every client package in every version: with connections of its own, and given by its user in each protocol. */
export const boxWays: readonly BoxWay[] = clientPackages.flatMap(waysOf)
