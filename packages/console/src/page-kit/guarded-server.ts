import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { isIP, type AddressInfo } from 'node:net'
import { failureText } from 'signalbox/reports'

/** Default address, which only this machine can reach. */
export const LOOPBACK = '127.0.0.1'
/** Addresses that mean all addresses of a machine. */
const ALL_ADDRESSES: readonly string[] = ['0.0.0.0', '::']
/** Maximum number of connections, so that viewers can't use up the file descriptors of this process. */
const MAX_CONNECTIONS = 100

/** The reason for the rejection of a request: the status and a text. */
export type RequestRefusal = readonly [status: number, text: string]

/** Answers a request, or returns the reason for its rejection. */
export type Answer = (request: IncomingMessage, response: ServerResponse) => RequestRefusal | undefined

/** A server for pages. Other sites can't reach it through a browser. */
export class GuardedServer {
  readonly #server: Server
  readonly #host: string

  private constructor(host: string, answer: Answer) {
    this.#host = host
    this.#server = createServer((request, response) => {
      const refusal = this.#refusalOf(request) ?? answerOf(answer, request, response)
      if (refusal) refuse(response, ...refusal)
    })
    this.#server.maxConnections = MAX_CONNECTIONS
  }

  /**
   * Begins to serve.
   * @param port 0 for a free one.
   * @param host the IP address or name on which to listen.
   * @throws Error if the port or the host can't be used.
   */
  static async open(port: number, answer: Answer, host = LOOPBACK): Promise<GuardedServer> {
    const serving = new GuardedServer(host, answer)
    const server = serving.#server
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error: Error) => {
        reject(new Error(`can't serve on ${inUrl(host)}:${port}: ${error.message}`, { cause: error }))
      })
      server.listen(port, host, resolve)
    })
    return serving
  }

  /** The address of the server, with a slash at the end. */
  get url(): string {
    const host = ALL_ADDRESSES.includes(this.#host) ? LOOPBACK : this.#host
    return `http://${inUrl(host)}:${(this.#server.address() as AddressInfo).port}/`
  }

  /** Rejects new connections, and ends the others when `drain` has resolved. */
  async close(drain?: () => Promise<unknown>): Promise<void> {
    // First, because it ends connections whose reply is complete and not yet sent.
    const closed = new Promise(resolve => this.#server.close(resolve))
    await drain?.()
    this.#server.closeAllConnections()
    await closed
  }

  #refusalOf({ headers }: IncomingMessage): RequestRefusal | undefined {
    const host = headers.host?.toLowerCase() ?? ''
    const name = host.replace(/:\d+$/, '').replace(/^\[(.+)\]$/, '$1')
    // The name of another site may resolve to this server, and the pages of that site must not read this one. The port
    // may be that of a tunnel or a container.
    if (isIP(name) === 0 && name !== 'localhost' && name !== this.#host.toLowerCase())
      return [421, 'this server answers only at IP addresses, localhost and the host that it was given']
    if (headers.origin !== undefined && headers.origin !== `http://${host}`)
      return [403, 'the request must come from the page of this server']
    return undefined
  }
}

/** Formats an IP address or name for a URL. */
function inUrl(host: string): string {
  return isIP(host) === 6 ? `[${host}]` : host
}

function answerOf(
  answer: Answer,
  request: IncomingMessage,
  response: ServerResponse,
): RequestRefusal | undefined {
  try {
    return answer(request, response)
  } catch (error) {
    // A request that fails must not end the program that serves the page.
    return [500, failureText(error)]
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
