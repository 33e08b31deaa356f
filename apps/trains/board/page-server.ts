import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import {
  EVENT_HEADERS,
  eventBytes,
  GuardedServer,
  MAX_BACKLOG,
  PAGE_FILES,
  PAGE_HEADERS,
  type RequestRefusal,
} from 'signalbox-console/page-kit'
import { clonePath } from '../clone-path.js'
import { InputError } from '../input/source.js'
import { reasonOf } from '../reason.js'
import type { Frame } from './frames.js'

/** Maximum time for pages to receive the last frames before the server closes, in milliseconds. */
const CLOSE_TIMEOUT = 2000

/** Serves the page on this machine, and sends frames to all open pages. */
export class PageServer {
  readonly #first: () => readonly Frame[]
  readonly #server: Promise<GuardedServer>
  readonly #pages = new Set<ServerResponse>()
  url = ''
  #onJoin: () => void = () => undefined
  /** Resolves when the first page is open. */
  readonly joined = new Promise<void>(resolve => (this.#onJoin = resolve))

  private constructor(port: number, first: () => readonly Frame[]) {
    this.#first = first
    this.#server = GuardedServer.open(port, (request, response) => this.#answer(request, response))
  }

  /**
   * Serves the page.
   * @param port 0 for a free one.
   * @param first returns the first frames of a page.
   * @throws InputError if the port can't be used.
   */
  static async open(port: number, first: () => readonly Frame[]): Promise<PageServer> {
    const pages = new PageServer(port, first)
    try {
      pages.url = (await pages.#server).url
    } catch (error) {
      throw new InputError(reasonOf(error), { cause: error })
    }
    return pages
  }

  get pages(): number {
    return this.#pages.size
  }

  send(frame: Frame): void {
    for (const page of this.#pages) {
      if (page.writableLength > MAX_BACKLOG) page.destroy()
      else page.write(eventBytes(frame))
    }
  }

  /** Stops serving after open pages have received all frames, or after `CLOSE_TIMEOUT`. */
  async close(): Promise<void> {
    const server = await this.#server
    await server.close(() => {
      const ended = [...this.#pages].map(page => {
        const closed = new Promise(resolve => page.once('close', resolve))
        page.end()
        return closed
      })
      return Promise.race([Promise.all(ended), setTimeout(CLOSE_TIMEOUT, undefined, { ref: false })])
    })
  }

  #answer({ method, url = '' }: IncomingMessage, response: ServerResponse): RequestRefusal | undefined {
    if (method !== 'GET' && method !== 'HEAD') return [405, 'only GET and HEAD are allowed here']
    const path = url.split('?')[0]!
    if (path === '/events' && method === 'GET') {
      // The request is pipelined. Its response has no socket yet, and would stay open if the viewer leaves.
      if (!response.socket) return [400, 'send this request on a connection of its own']
      this.#join(response)
    } else {
      const file = path.startsWith('/') ? PAGE_FILES.get(path.slice(1)) : undefined
      if (!file) return [404, 'not found']
      const [name, type] = file
      const text = readFileSync(join(clonePath, 'dist/apps/trains/board/page', name))
      response.writeHead(200, { ...PAGE_HEADERS, 'Content-Type': `${type}; charset=utf-8` })
      response.end(text)
    }
    return undefined
  }

  #join(response: ServerResponse): void {
    response.writeHead(200, { ...PAGE_HEADERS, ...EVENT_HEADERS })
    response.on('close', () => this.#pages.delete(response))
    response.on('error', () => undefined)
    for (const frame of this.#first()) response.write(eventBytes(frame))
    this.#pages.add(response)
    this.#onJoin()
  }
}
