import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { clonePath } from '../clone-path.js'
import { InputError } from '../input/source.js'
import type { Frame } from './frames.js'

const HOST = '127.0.0.1'

/** The files of the page, by their path on the server. */
const FILES: ReadonlyMap<string, readonly [file: string, type: string]> = new Map([
  ['/', ['board.html', 'text/html']],
  ['/board.css', ['board.css', 'text/css']],
  ['/board.js', ['board.js', 'text/javascript']],
  ['/diagram.js', ['diagram.js', 'text/javascript']],
  ['/panel.js', ['panel.js', 'text/javascript']],
  ['/trains.js', ['trains.js', 'text/javascript']],
])

/** A name from a timetable must never be executed, and nothing is loaded from other servers. */
const HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
} as const

/**
 * Maximum number of bytes that a page has not yet read. A page with more is disconnected; it reconnects, and starts
 * with the current state.
 */
const MAX_BACKLOG = 4 << 20
/** Time for pages to read what was sent before the server closes, in milliseconds. */
const CLOSE_TIMEOUT = 2000

/** Serves the page on this machine, and sends frames to all open pages. */
export class PageServer {
  readonly #server: Server
  readonly #pages = new Set<ServerResponse>()
  readonly #files = new Map<string, readonly [content: Buffer, type: string]>()
  readonly #first: () => readonly Frame[]

  /** @param first returns the first frames of a page. */
  private constructor(first: () => readonly Frame[]) {
    this.#first = first
    for (const [path, [file, type]] of FILES)
      this.#files.set(path, [readFileSync(join(clonePath, 'apps/trains/board/page', file)), type])
    this.#server = createServer((request, response) => this.#answer(request, response))
  }

  /**
   * Serves the page.
   * @param port 0 for a free one.
   * @throws InputError if the port can't be used.
   */
  static async open(port: number, first: () => readonly Frame[]): Promise<PageServer> {
    const pages = new PageServer(first)
    const server = pages.#server
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error: Error) => {
        reject(new InputError(`can't serve the page on ${HOST}:${port}: ${error.message}`, { cause: error }))
      })
      server.listen(port, HOST, resolve)
    })
    return pages
  }

  get url(): string {
    return `http://${HOST}:${(this.#server.address() as AddressInfo).port}/`
  }

  /** Number of open pages. */
  get pages(): number {
    return this.#pages.size
  }

  send(frame: Frame): void {
    if (this.#pages.size === 0) return
    const text = event(frame)
    for (const page of this.#pages) {
      if (page.writableLength > MAX_BACKLOG) page.destroy()
      else page.write(text)
    }
  }

  /** Stops serving, after pages have received what was sent. */
  async close(): Promise<void> {
    this.#server.close()
    const ended = [...this.#pages].map(page => {
      const closed = new Promise(resolve => page.once('close', resolve))
      page.end()
      return closed
    })
    await Promise.race([Promise.all(ended), setTimeout(CLOSE_TIMEOUT, undefined, { ref: false })])
    this.#server.closeAllConnections()
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value)
    // Another site whose name resolves to this address must not read the page.
    if (!/^(127\.0\.0\.1|localhost)(:\d+)?$/i.test(request.headers.host ?? '')) return refuse(response, 421)
    const { method } = request
    if (method !== 'GET' && method !== 'HEAD') return refuse(response, 405)
    const path = request.url!.split('?')[0]!
    if (path === '/events' && method === 'GET') return this.#join(response)
    const file = this.#files.get(path)
    if (!file) return refuse(response, 404)
    const [content, type] = file
    response.setHeader('Content-Type', `${type}; charset=utf-8`)
    response.end(content)
  }

  #join(response: ServerResponse): void {
    response.setHeader('Content-Type', 'text/event-stream')
    response.on('close', () => this.#pages.delete(response))
    response.on('error', () => undefined)
    response.write(this.#first().map(event).join(''))
    this.#pages.add(response)
  }
}

function refuse(response: ServerResponse, status: number): void {
  response.statusCode = status
  response.end()
}

function event(frame: Frame): string {
  return `data: ${JSON.stringify(frame)}\n\n`
}
