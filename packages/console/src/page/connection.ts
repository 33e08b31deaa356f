import { followEvents, RequestError } from '../page-kit/browser/event-stream.js'
import type { Freshness } from '../page-kit/browser/freshness.js'
import type { Message } from '../messages.js'
import { modelAfter, type Model } from './model.js'

/** Key of the secret in the session storage of this tab. There it survives a reload. */
const SECRET = 'signalbox-secret'
/** Age from which the last answer of the engine is old, in milliseconds. The server sends a message a second. */
const OLD_AFTER = 4000

/** The connection to the server: receives the state, and sends requests. */
export class Connection {
  model: Model | undefined
  readonly #onChange: () => void
  #secret: string | undefined
  #isLocked = false
  /** The reason why no messages arrive. */
  #lost: string | undefined
  #fault: string | undefined
  /** Time of the engine's last answer, by the clock of the server. */
  #answeredAt: number | undefined
  /** Offset of the server's clock from this one, in milliseconds. */
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

  /** Sends a POST request, and returns the answer. @throws RequestError */
  post(name: string, order: object): Promise<unknown> {
    const headers = { 'Content-Type': 'application/json' }
    return this.#ask(name, { method: 'POST', headers, body: JSON.stringify(order) })
  }

  /** Sends a GET request, and returns the answer. @throws RequestError */
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

  /** Resolves when there is a secret that the server has not rejected. */
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
