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

/** Opens a box with connections of its own by a package. */
export function openBy(
  { connectWith }: Pick<TestedPackage, 'connectWith'>,
  url: string,
  more?: RedisOptions,
): Promise<Box> {
  const { options, ...place } = parseRedisUrl(url)
  const link = linkTo({ ...place, options }, connectWith)
  return Box.join(new RedisEngine(link, { ...options, ...more }, systemClock), systemClock)
}

/** Returns every way for a box to talk to a server by a package. */
function waysOf({ name, connectWith, client, protocols }: TestedPackage): BoxWay[] {
  return [
    {
      name: `${name}, connections of its own`,
      async open(url, more) {
        const box = await openBy({ connectWith }, url, more)
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
