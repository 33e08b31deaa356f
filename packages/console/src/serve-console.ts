import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { InvalidArgumentError, type Box } from 'signalbox'
import { checkOptions, shown } from 'signalbox/engine'
import { consoleOf, type ConsoleOptions } from './console-of.js'
import { GuardedServer, LOOPBACK, type RequestRefusal } from './page-kit/guarded-server.js'
import { PAGE_FILES } from './page-kit/page-headers.js'

/** Options of {@link serveConsole}. */
export interface ServeOptions extends ConsoleOptions {
  /** The IP address or name on which to listen; default `127.0.0.1`. Beyond this machine, the traffic is not encrypted. */
  host?: string | undefined
  /** The port; by default, a free one. */
  port?: number | undefined
}

/** A console on a port of its own. */
export interface ServedConsole {
  /** The address of the page. It contains the secret, so print it only for those who may use the console. */
  readonly url: string
  /** Disconnects the pages and frees the port. Does not close the box. */
  close(): Promise<void>
}

/**
 * Serves a console on a port of its own, to browsers that know a secret. The secret is new for each call. The address
 * has it after the `#`, which browsers do not send. The page sends it in a header, so that it is in no log, no `Referer`
 * and no cookie, which servers on other ports of this machine would receive.
 *
 * ```ts
 * const served = await serveConsole(box, { readOnly: true })
 * console.log(`open ${served.url}`)
 * ```
 * @throws InvalidArgumentError when an option is invalid; Error if the port or the host can't be used.
 */
export async function serveConsole(box: Box, options: ServeOptions = {}): Promise<ServedConsole> {
  checkOptions(options, ['host', 'port', 'readOnly', 'diagnose', 'log'])
  const { host = LOOPBACK, port = 0, ...rest } = options
  // An empty host would mean all addresses.
  if (typeof host !== 'string' || host === '')
    throw new InvalidArgumentError(`host must be an IP address or a name, not ${shown(host)}`)
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new InvalidArgumentError(`port must be a whole number from 0 to 65535, not ${shown(port)}`)
  const console = consoleOf(box, rest)
  const secret = randomBytes(24).toString('base64url')
  const answer = (request: IncomingMessage, response: ServerResponse): RequestRefusal | undefined => {
    const refusal = refusalOf(request, secret)
    if (!refusal) console.node(request, response)
    return refusal
  }
  const server = await GuardedServer.open(port, answer, host)
  return {
    url: `${server.url}#secret=${secret}`,
    async close() {
      console.close()
      await server.close()
    },
  }
}

/**
 * Returns the reason for the rejection of a request, if any. The files of the page contain nothing about the engine.
 */
function refusalOf({ headers, url = '' }: IncomingMessage, secret: string): RequestRefusal | undefined {
  if (PAGE_FILES.has(url.split('?')[0]!.slice(1))) return undefined
  const given = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1] ?? ''
  return isEqual(given, secret) ? undefined : [401, 'the secret of this console is missing or wrong']
}

/** Compares two texts in a time that does not depend on where they differ. */
function isEqual(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
