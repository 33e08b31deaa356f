import { DEFAULT_TIMEOUTS, type Timeouts } from '../../../src/engines/redis/clients/connection.js'
import { detectClient } from '../../../src/engines/redis/clients/detect-client.js'
import type { RedisLink } from '../../../src/engines/redis/clients/redis-link.js'
import { linkOver, linkTo } from '../../../src/engines/redis/links.js'
import { parseRedisUrl } from '../../../src/engines/redis/redis-url.js'
import { clientPackages, type UserClient } from './client-packages.js'
import { Heard } from './heard.js'

/** Timeouts that are short enough for tests, and long enough for a busy machine. */
export const PATIENCE: Timeouts = { ...DEFAULT_TIMEOUTS, answer: 1000, heartbeat: 200 }

/** A link, and its reports. Disposing of it closes the link, and the client that was passed to it. */
export interface OpenLink extends AsyncDisposable {
  readonly link: RedisLink
  readonly heard: Heard
}

/** A way to get a link to one server. */
export interface LinkWay {
  readonly name: string
  readonly isOwn: boolean
  /** Opens a link, and connects it. */
  open(place: { readonly port: number }): Promise<OpenLink>
}

function openLink(link: RedisLink, heard: Heard, given: UserClient | undefined): OpenLink {
  return {
    link,
    heard,
    async [Symbol.asyncDispose]() {
      await link.close()
      given?.close()
    },
  }
}

/** Every client package in every version: with connections of its own, and given by its user in each protocol. */
export const linkWays: readonly LinkWay[] = clientPackages.flatMap(
  ({ name, protocols, connectWith, client }) => [
    {
      name: `${name}, own connections`,
      isOwn: true,
      async open({ port }) {
        const heard = new Heard()
        const link = linkTo(parseRedisUrl(`redis://127.0.0.1:${port}`), connectWith, PATIENCE)(heard)
        await link.connect()
        return openLink(link, heard, undefined)
      },
    },
    ...protocols.map((protocol): LinkWay => ({
      name: `${name}, an existing client, RESP${protocol}`,
      isOwn: false,
      async open({ port }) {
        const heard = new Heard()
        const given = await client(`redis://127.0.0.1:${port}`, protocol)
        const link = linkOver(detectClient(given.client), PATIENCE)(heard)
        await link.connect()
        return openLink(link, heard, given)
      },
    })),
  ],
)
