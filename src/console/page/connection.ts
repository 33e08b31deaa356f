import type { Message } from '../messages.js'
import { modelAfter, type Model } from './model.js'

/** The secret is kept for this tab alone, so that a reload does not ask for it. */
const SECRET = 'signalbox-secret'
/** Delay before the next attempt to connect, in milliseconds. */
const RETRY_DELAY = 1000
/** A connection on which nothing arrives for this long is given up, in milliseconds. */
const MAX_SILENCE = 20_000
/** The server sends a message a second. What is shown is old if none has arrived for this long, in milliseconds. */
const OLD_AFTER = 4000

/** Whether what the page shows is current, and if not, why. */
export type Freshness =
  | { readonly state: 'live' | 'connecting' | 'locked' }
  /** @property since by the clock of the server. */
  | { readonly state: 'old'; readonly since: number | undefined; readonly reason: string }

/** An error that a request was answered with. */
export class RequestError extends Error {}

/** The connection to the server: what the page knows, and the orders that it gives. */
export class Connection {
  model: Model | undefined
  readonly #onChange: () => void
  #secret: string | undefined
  #isLocked = false
  /** Why nothing arrives. */
  #lost: string | undefined
  #fault: string | undefined
  /** When the engine last answered, by the clock of the server. */
  #answeredAt: number | undefined
  /** How far the clock of the server is ahead of this one, in milliseconds. */
  #ahead = 0
  #heardAt = 0
  #wakeUp: (() => void) | undefined

  constructor(onChange: () => void) {
    this.#onChange = onChange
    this.#secret = sessionStorage.getItem(SECRET) ?? undefined
    addEventListener('hashchange', () => this.#takeSecret())
    this.#takeSecret()
    void this.#run()
  }

  /** The time by the clock of the server. */
  now(): number {
    return Date.now() + this.#ahead
  }

  freshness(): Freshness {
    if (this.#isLocked) return { state: 'locked' }
    const since = this.#answeredAt
    if (this.#lost !== undefined) return { state: 'old', since, reason: this.#lost }
    if (this.#fault !== undefined) return { state: 'old', since, reason: this.#fault }
    if (since === undefined) return { state: 'connecting' }
    const isOld = this.now() - since > OLD_AFTER
    return isOld ? { state: 'old', since, reason: 'The engine has not answered yet.' } : { state: 'live' }
  }

  /** Sends an order, and returns the answer. @throws RequestError */
  post(name: string, order: object): Promise<unknown> {
    const headers = { 'Content-Type': 'application/json' }
    return this.#ask(name, { method: 'POST', headers, body: JSON.stringify(order) })
  }

  /** Reads something. @throws RequestError */
  get(name: string, query: Readonly<Record<string, string>>): Promise<unknown> {
    return this.#ask(`${name}?${new URLSearchParams(query).toString()}`, {})
  }

  async #ask(path: string, init: RequestInit): Promise<unknown> {
    const response = await this.#fetch(path, init).catch(() => {
      throw new RequestError('The server of this page does not answer.')
    })
    const answer = (await response.json().catch(() => ({}))) as { error?: string }
    if (!response.ok)
      throw new RequestError(answer.error ?? `The server answered with status ${response.status}.`)
    return answer
  }

  #fetch(path: string, { headers, ...init }: RequestInit): Promise<Response> {
    const secret = this.#secret === undefined ? {} : { Authorization: `Bearer ${this.#secret}` }
    return fetch(path, { ...init, cache: 'no-store', headers: { ...(headers as object), ...secret } })
  }

  /** Takes the secret out of the address, because users send addresses to colleagues. */
  #takeSecret(): void {
    const secret = /^#secret=([\w-]+)$/.exec(location.hash)?.[1]
    if (secret === undefined) return
    this.#secret = secret
    sessionStorage.setItem(SECRET, secret)
    history.replaceState(null, '', '#/locks')
    this.#isLocked = false
    this.#wakeUp?.()
  }

  async #run(): Promise<void> {
    for (;;) {
      try {
        await this.#follow()
        this.#lost = 'The server closed the connection.'
      } catch (error) {
        this.#lost =
          error instanceof RequestError ? error.message : 'The server of this page does not answer.'
      }
      this.#onChange()
      await new Promise<void>(resolve => {
        this.#wakeUp = resolve
        if (!this.#isLocked) setTimeout(resolve, RETRY_DELAY)
      })
    }
  }

  /** Connects, and takes messages until the connection ends. */
  async #follow(): Promise<void> {
    const silence = new AbortController()
    this.#heardAt = Date.now()
    const watch = setInterval(() => {
      if (Date.now() - this.#heardAt > MAX_SILENCE) silence.abort()
    }, RETRY_DELAY)
    try {
      const response = await this.#fetch('events', { signal: silence.signal })
      if (response.status === 401) {
        this.#isLocked = true
        throw new RequestError('The secret of this console is missing or wrong.')
      }
      const type = response.headers.get('content-type') ?? ''
      if (!response.ok || !type.startsWith('text/event-stream') || !response.body)
        throw new RequestError(
          `The server answered with status ${response.status}; you may have to sign in again.`,
        )
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
      let parts: string[] = []
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        this.#heardAt = Date.now()
        const [first, ...others] = next.value.split('\n\n')
        parts.push(first!)
        for (const other of others) {
          this.#take(JSON.parse(parts.join('').slice('data: '.length)) as Message)
          parts = [other]
        }
      }
    } finally {
      clearInterval(watch)
      silence.abort()
    }
  }

  #take(message: Message): void {
    this.#lost = undefined
    this.model = modelAfter(this.model, message)
    this.#fault = message.type === 'fault' ? message.text : undefined
    if (message.type !== 'fault') this.#answeredAt = message.at
    this.#ahead = message.at - Date.now()
    this.#onChange()
  }
}
