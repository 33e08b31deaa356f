import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { BoxConsole } from '../console/index.js'
import { EXIT } from './exit-status.js'
import { CommandError } from './failure.js'

const HOST = '127.0.0.1'

/** The files of the page, which contain nothing about the engine. */
const PUBLIC: readonly string[] = ['/', '/page.js', '/page.css']

/**
 * Serves a console on this machine to those who know a secret. The address has it after the `#`, which browsers do not
 * send; the page sends it in a header, so that it is in no log, no `Referer` and no cookie, which servers on other
 * ports of this machine would receive.
 */
export class ConsoleServer {
  readonly #server: Server
  readonly #secret: string

  private constructor(console: BoxConsole, secret: string) {
    this.#secret = secret
    this.#server = createServer((request, response) => {
      const refusal = this.#refusalOf(request)
      if (refusal === undefined) console.node(request, response)
      else refuse(response, ...refusal)
    })
  }

  /**
   * Begins to serve.
   * @param port 0 for a free one.
   * @throws CommandError if the port can't be used.
   */
  static async open(console: BoxConsole, port: number, secret: string): Promise<ConsoleServer> {
    const serving = new ConsoleServer(console, secret)
    await new Promise<void>((resolve, reject) => {
      serving.#server.once('error', error => {
        reject(new CommandError(`can't serve on ${HOST}:${port}: ${error.message}`, EXIT.failed))
      })
      serving.#server.listen(port, HOST, resolve)
    })
    return serving
  }

  /** The address of the page, with the secret. */
  get url(): string {
    return `http://${HOST}:${this.#port}/#secret=${this.#secret}`
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    const closed = new Promise(resolve => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }

  get #port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Returns why a request is refused, if it is. */
  #refusalOf({ headers, url = '' }: IncomingMessage): [status: number, text: string] | undefined {
    const hosts = [`${HOST}:${this.#port}`, `localhost:${this.#port}`]
    // The name of another site may lead to this address, and its pages must not get at this one.
    if (!hosts.includes(headers.host?.toLowerCase() ?? '')) return [421, 'this server has another name']
    if (headers.origin !== undefined && !hosts.some(host => headers.origin === `http://${host}`))
      return [403, 'the request must come from the page of this console']
    if (PUBLIC.includes(url.split('?')[0]!)) return undefined
    const given = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1] ?? ''
    return isEqual(given, this.#secret) ? undefined : [401, 'the secret of this console is missing or wrong']
  }
}

/** Compares two texts in a time that does not depend on where they differ. */
function isEqual(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

function refuse(response: ServerResponse, status: number, error: string): void {
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'X-Content-Type-Options': 'nosniff',
    'Cache-Control': 'no-store',
    Connection: 'close',
  })
  response.end(JSON.stringify({ error }))
}
