import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** A call that a {@link ModelProvider} has accepted. */
interface ModelCall {
  /** Milliseconds. */
  readonly at: number
  readonly tokens: number
  readonly prompt: string
}

/**
 * A model provider with limits of requests and of tokens in any window. It counts each call at its arrival, with the
 * tokens that its answer will report, and refuses calls above a limit.
 */
export class ModelProvider implements AsyncDisposable {
  readonly accepted: ModelCall[] = []
  refused = 0
  readonly #server = createServer((request, response) => void this.#answer(request, response))

  private constructor(
    readonly requests: number,
    readonly tokens: number,
    /** Length of the window, in milliseconds. */
    readonly per: number,
  ) {}

  static async start(requests: number, tokens: number, per: number): Promise<ModelProvider> {
    const provider = new ModelProvider(requests, tokens, per)
    await once(provider.#server.listen(0, '127.0.0.1'), 'listening')
    return provider
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`
  }

  /** Returns the numbers of calls and tokens in a window that ends now. */
  used(now: number): { readonly requests: number; readonly tokens: number } {
    const recent = this.accepted.filter(({ at }) => now - at < this.per)
    return { requests: recent.length, tokens: recent.reduce((sum, { tokens }) => sum + tokens, 0) }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const at = performance.now()
    const { prompt, max_tokens: most } = JSON.parse(await text(request)) as {
      prompt: string
      max_tokens: number
    }
    const length = 20 + ((prompt.length * 7) % (most - 20))
    const tokens = Math.ceil(prompt.length / 4) + length
    const used = this.used(at)
    if (used.requests >= this.requests || used.tokens + tokens > this.tokens) {
      this.refused++
      response.writeHead(429, { 'Retry-After': '1' }).end()
      return
    }
    this.accepted.push({ at, tokens, prompt })
    setTimeout(() => {
      response.setHeader('Content-Type', 'application/json')
      response.end(JSON.stringify({ text: `${length} tokens`, usage: { total_tokens: tokens } }))
    }, 20)
  }
}
