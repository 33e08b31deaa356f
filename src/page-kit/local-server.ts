import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

const HOST = '127.0.0.1'

/** Why a request is refused: the status and a text. */
export type RequestRefusal = readonly [status: number, text: string]

/** Answers a request, or returns why it is refused. */
export type Answer = (request: IncomingMessage, response: ServerResponse) => RequestRefusal | undefined

/** A server for pages on this machine alone. Other sites can't reach it through a browser. */
export class LocalServer {
  readonly #server: Server

  private constructor(answer: Answer) {
    this.#server = createServer((request, response) => {
      const refusal = this.#refusalOf(request) ?? answer(request, response)
      if (refusal) refuse(response, ...refusal)
    })
  }

  /**
   * Begins to serve on 127.0.0.1.
   * @param port 0 for a free one.
   * @throws Error if the port can't be used.
   */
  static async open(port: number, answer: Answer): Promise<LocalServer> {
    const serving = new LocalServer(answer)
    const server = serving.#server
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error: Error) => {
        reject(new Error(`can't serve on ${HOST}:${port}: ${error.message}`, { cause: error }))
      })
      server.listen(port, HOST, resolve)
    })
    return serving
  }

  /** The address of the server, with a slash at its end. */
  get url(): string {
    return `http://${HOST}:${this.#port}/`
  }

  /** Rejects new connections, and ends the others when `drain` has resolved. */
  async close(drain?: () => Promise<unknown>): Promise<void> {
    // First, because it ends connections whose reply is complete and not yet sent.
    const closed = new Promise(resolve => this.#server.close(resolve))
    await drain?.()
    this.#server.closeAllConnections()
    await closed
  }

  get #port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  #refusalOf({ headers }: IncomingMessage): RequestRefusal | undefined {
    // Browsers leave out the port 80.
    const hosts = [HOST, 'localhost'].map(name => new URL(`http://${name}:${this.#port}`).host)
    // The name of another site may lead to this address, and its pages must not get at this one.
    if (!hosts.includes(headers.host?.toLowerCase() ?? ''))
      return [421, `this server answers only at ${hosts.join(' and ')}`]
    if (headers.origin !== undefined && !hosts.some(host => headers.origin === `http://${host}`))
      return [403, 'the request must come from the page of this server']
    return undefined
  }
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
