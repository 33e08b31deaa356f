import { followEvents, RequestError } from '../../page-kit/browser/event-stream.js'
import type { Freshness } from '../../page-kit/browser/freshness.js'
import type { Message } from '../messages.js'
import { modelAfter, type Model } from './model.js'

/** The secret is kept for this tab alone, so that a reload does not ask for it. */
const SECRET = 'signalbox-secret'
/** The server sends a message a second. What is shown is old if none has arrived for this long, in milliseconds. */
const OLD_AFTER = 4000

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
  #wakeUp: (() => void) | undefined

  constructor(onChange: () => void) {
    this.#onChange = onChange
    this.#secret = sessionStorage.getItem(SECRET) ?? undefined
    addEventListener('hashchange', () => this.#takeSecret())
    this.#takeSecret()
    void followEvents({
      open: signal => this.#openEvents(signal),
      ready: () => this.#unlocked(),
      take: message => this.#take(message as Message),
      lost: reason => {
        this.#lost = reason
        this.#onChange()
      },
    })
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

  async #openEvents(signal: AbortSignal): Promise<Response> {
    const response = await this.#fetch('events', { signal })
    this.#isLocked = response.status === 401
    if (this.#isLocked) throw new RequestError('The secret of this console is missing or wrong.')
    return response
  }

  /** Resolves when there is a secret that the server has not refused. */
  async #unlocked(): Promise<void> {
    if (this.#isLocked) await new Promise<void>(resolve => (this.#wakeUp = resolve))
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
