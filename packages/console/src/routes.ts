import {
  IndeterminateError,
  InvalidArgumentError,
  UnavailableError,
  type Box,
  type Diagnosis,
} from 'signalbox'
import { systemClock } from 'signalbox/engine'
import { failureText, printable, printableJson } from 'signalbox/reports'
import { EVENT_HEADERS } from './page-kit/events.js'
import { PAGE_FILES, PAGE_HEADERS } from './page-kit/page-headers.js'
import { pageFile } from './page-file.js'
import { storeNames, valuePage, valueView } from './values.js'
import { Watcher, type Viewer } from './watcher.js'

/** The rejection of a request, with its HTTP status and its text. */
class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message)
  }
}

/** A request to a server of any kind. */
export interface Asked {
  readonly method: string
  /** The path as the browser sees it. */
  readonly path: string
  readonly query: URLSearchParams
  /** Returns a header by its name in lower case. */
  header(name: string): string | undefined
  /** Reads the body as text. @throws Refusal when it is longer than `MAX_BODY`. */
  body(): Promise<string>
}

/** A reply with a text, or one to which a viewer can be added. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly content: string | { join(viewer: Viewer): () => void }
}

/** The checked options of a console. */
export interface Settings {
  readonly readOnly: boolean
  readonly diagnose: (() => Promise<Diagnosis>) | undefined
  readonly log: (line: string) => void
}

/** Maximum length of a request's body, in bytes. */
const MAX_BODY = 64 << 10

/** Adds to the length of a body. @throws Refusal when it becomes too long. */
export function lengthened(length: number, part: number): number {
  if (length + part > MAX_BODY) throw new Refusal(413, `the body must have at most ${MAX_BODY} bytes`)
  return length + part
}

/** Answers the requests of the page under any path: only the last segment of a path counts. */
export class Routes {
  readonly #box: Box
  readonly #settings: Settings
  readonly #watcher: Watcher
  #isClosed = false

  constructor(box: Box, settings: Settings) {
    this.#box = box
    this.#settings = settings
    const { readOnly, diagnose } = settings
    this.#watcher = new Watcher(box, { readOnly, hasDoctor: diagnose !== undefined }, systemClock)
  }

  /** Rejects further requests. */
  close(): void {
    this.#isClosed = true
  }

  /** Answers a request. Never throws. */
  async answer(asked: Asked): Promise<Reply> {
    try {
      if (this.#isClosed) throw new Refusal(503, 'the console is closed')
      return await this.#route(asked)
    } catch (error) {
      return json(statusOf(error), { error: printable(failureText(error)) })
    }
  }

  async #route(asked: Asked): Promise<Reply> {
    const { method, path } = asked
    const name = nameIn(path)
    const file = PAGE_FILES.get(name)
    if (file) {
      allow(method, 'GET', 'HEAD')
      const [source, type] = file
      return reply(200, { 'Content-Type': `${type}; charset=utf-8` }, pageFile(source))
    }
    switch (name) {
      case 'events':
        allow(method, 'GET')
        assertNotCrossSite(asked)
        return reply(200, EVENT_HEADERS, { join: viewer => this.#watcher.join(viewer) })
      case 'value':
        allow(method, 'GET')
        assertNotCrossSite(asked)
        return json(200, await this.#value(asked.query))
      case 'stores':
        allow(method, 'GET')
        assertNotCrossSite(asked)
        return json(200, await storeNames(this.#box))
      case 'values':
        allow(method, 'GET')
        assertNotCrossSite(asked)
        return json(200, await this.#values(asked.query))
      case 'release':
        return json(200, await this.#release(await this.#action(asked)))
      case 'revoke':
        return json(200, await this.#revoke(await this.#action(asked)))
      case 'doctor':
        await bodyOf(asked)
        return json(200, await this.#doctor())
      default:
        // The page's own addresses are relative, so it must be at a path that ends with a slash.
        allow(method, 'GET', 'HEAD')
        return reply(308, { Location: `./${encodeURIComponent(decoded(name))}/` }, '')
    }
  }

  /** Checks a request that changes something, and returns its body. */
  async #action(asked: Asked): Promise<Readonly<Record<string, unknown>>> {
    const body = await bodyOf(asked)
    if (this.#settings.readOnly) throw new Refusal(403, 'this console is read-only')
    return body
  }

  #value(query: URLSearchParams): Promise<object> {
    return valueView(this.#box.store(text(query.get('store'))), text(query.get('key')))
  }

  #values(query: URLSearchParams): Promise<object> {
    const store = text(query.get('store'))
    const wanted = { prefix: query.get('prefix') ?? '', after: query.get('after') ?? '' }
    return valuePage(this.#box.store(store), store, wanted)
  }

  async #release(body: Readonly<Record<string, unknown>>): Promise<object> {
    const key = text(body['key'])
    const token = text(body['token'])
    if (!/^\d{1,19}$/.test(token)) throw new Refusal(400, 'token must be the digits of a token')
    const forget = this.#watcher.releasedByHand(key, token)
    const released = await this.#box.forceRelease(key, BigInt(token))
    if (!released) forget()
    this.#log(
      `${released ? 'released' : 'found nothing to release:'} key ${printableJson(key)}, token ${token}`,
    )
    if (!released) throw new Refusal(404, `${key} has no holder with token ${token} any more`)
    return { released }
  }

  async #revoke(body: Readonly<Record<string, unknown>>): Promise<object> {
    const session = text(body['session'])
    const forget = this.#watcher.revokedByHand(session)
    const requests = await this.#box.revoke(session)
    if (requests === 0) forget()
    this.#log(
      `revoked session ${printableJson(session)}: ${requests} ${requests === 1 ? 'request' : 'requests'}`,
    )
    if (requests === 0)
      throw new Refusal(404, `session ${session} holds nothing and waits for nothing any more`)
    return { requests }
  }

  async #doctor(): Promise<Diagnosis> {
    const { diagnose } = this.#settings
    if (!diagnose) throw new Refusal(404, 'this console has no doctor')
    return diagnose()
  }

  #log(line: string): void {
    this.#settings.log(`console: ${line}`)
  }
}

function nameIn(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    throw new Refusal(404, 'not found')
  }
}

function allow(method: string, ...allowed: readonly string[]): void {
  if (!allowed.includes(method)) throw new Refusal(405, `only ${allowed.join(' and ')} is allowed here`)
}

/**
 * Checks that a request comes from the console's own page. A browser sends JSON to another origin only with that
 * origin's consent, and names the page's origin.
 */
async function bodyOf(asked: Asked): Promise<Readonly<Record<string, unknown>>> {
  allow(asked.method, 'POST')
  assertNotCrossSite(asked)
  if (asked.header('sec-fetch-site') === undefined && !isOwnOrigin(asked))
    throw new Refusal(403, 'the request must come from the page of this console')
  if (!/^application\/json\s*(;|$)/i.test(asked.header('content-type') ?? ''))
    throw new Refusal(415, 'the body must be application/json')
  const sent = await asked.body()
  let body: unknown
  try {
    body = JSON.parse(sent)
  } catch {
    throw new Refusal(400, 'the body must be valid JSON')
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new Refusal(400, 'the body must be a JSON object')
  return body as Readonly<Record<string, unknown>>
}

function assertNotCrossSite(asked: Asked): void {
  const site = asked.header('sec-fetch-site')
  const isOther =
    site === undefined ? asked.header('origin') !== undefined && !isOwnOrigin(asked) : site !== 'same-origin'
  if (isOther) throw new Refusal(403, 'the request must come from the page of this console')
}

function isOwnOrigin(asked: Asked): boolean {
  const origin = asked.header('origin') ?? ''
  return URL.canParse(origin) && new URL(origin).host === asked.header('host')
}

function text(value: unknown): string {
  if (typeof value !== 'string') throw new Refusal(400, 'a text is missing')
  return value
}

function statusOf(error: unknown): number {
  if (error instanceof Refusal) return error.status
  if (error instanceof InvalidArgumentError) return 400
  if (error instanceof UnavailableError) return 503
  return error instanceof IndeterminateError ? 504 : 500
}

function json(status: number, content: object): Reply {
  return reply(status, { 'Content-Type': 'application/json; charset=utf-8' }, JSON.stringify(content))
}

function reply(status: number, headers: Reply['headers'], content: Reply['content']): Reply {
  return { status, headers: { ...PAGE_HEADERS, ...headers }, content }
}
