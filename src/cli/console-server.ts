import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { BoxConsole } from '../console/index.js'
import { failureText } from '../base/failure-text.js'
import { GuardedServer, type RequestRefusal } from '../page-kit/guarded-server.js'
import { PAGE_FILES } from '../page-kit/page-headers.js'
import { EXIT } from './exit-status.js'
import { CommandError } from './failure.js'

/**
 * Serves a console to clients that know a secret. The address has it after the `#`, which browsers do not send. The
 * page sends it in a header, so that it is in no log, no `Referer` and no cookie, which servers on other ports of this
 * machine would receive.
 */
export class ConsoleServer {
  readonly #server: GuardedServer
  readonly #secret: string

  private constructor(server: GuardedServer, secret: string) {
    this.#server = server
    this.#secret = secret
  }

  /**
   * Begins to serve.
   * @param port 0 for a free one.
   * @param host the IP address or name on which to listen.
   * @throws CommandError if the port or the host can't be used.
   */
  static async open(console: BoxConsole, port: number, host: string, secret: string): Promise<ConsoleServer> {
    const answer = (request: IncomingMessage, response: ServerResponse): RequestRefusal | undefined => {
      const refusal = refusalOf(request, secret)
      if (!refusal) console.node(request, response)
      return refusal
    }
    const opening = GuardedServer.open(port, answer, host)
    const server = await opening.catch((error: unknown) => {
      throw new CommandError(failureText(error), EXIT.failed)
    })
    return new ConsoleServer(server, secret)
  }

  /** The address of the page, with the secret. */
  get url(): string {
    return `${this.#server.url}#secret=${this.#secret}`
  }

  /** Ends all connections. */
  close(): Promise<void> {
    return this.#server.close()
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
