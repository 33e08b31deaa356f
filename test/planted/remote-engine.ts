import { IndeterminateError, UnavailableError } from '../../src/base/errors.js'
import type { Delays } from '../../packages/conformance/src/fixture.js'
import type {
  Awaitable,
  Engine,
  Listener,
  LockRequest,
  Operation,
  OutcomeOf,
  SessionInfo,
} from '../../src/engine/contract.js'
import type { Guarantees } from '../../src/base/guarantees.js'
import { DistantLine } from '../support/distant-line.js'

/** A connection that can lose messages or break. */
class Connection {
  losesRequests = false
  losesReplies = false
  /** Rejects when the connection breaks. */
  readonly broken: Promise<never>
  break!: () => void

  constructor(name: string) {
    this.broken = new Promise((_, reject) => {
      this.break = () => reject(new IndeterminateError('the connection broke', { engine: name }))
    })
    this.broken.catch(() => undefined)
  }
}

const never = new Promise<never>(() => undefined)

/**
 * Puts an engine behind a network that checks can disturb. The client repeats nothing: an operation under way fails
 * when the connection breaks. The client reconnects at once and then wakes all waiters, because hints may have been
 * lost.
 */
export class RemoteEngine implements Engine {
  readonly name: string
  readonly guarantees: Guarantees
  readonly reportsContention = false
  readonly coversBySigns = true
  readonly #engine: Engine
  readonly #line = new DistantLine(() => this.#way())
  readonly #waiting = new Map<string, LockRequest>()
  #delays: Delays = { way: 0 }
  #connection: Connection | undefined
  #listener: Listener | undefined

  constructor(engine: Engine) {
    this.#engine = engine
    this.name = engine.name
    this.guarantees = engine.guarantees
    this.#connection = new Connection(this.name)
  }

  /** Returns the requests that wait, as far as the client knows. */
  waiting(): LockRequest[] {
    return [...this.#waiting.values()]
  }

  join(member: SessionInfo, listener: Listener): Awaitable<void> {
    this.#listener = listener
    return this.#engine.join(
      member,
      this.#line.hintsFor(listener, () => this.#connection?.losesReplies ?? true),
    )
  }

  async submit<O extends Operation>(operation: O): Promise<OutcomeOf<O>> {
    const connection = this.#connection
    if (!connection) throw new UnavailableError('not connected', { engine: this.name })
    const sent = this.#line.send(() => {
      if (connection !== this.#connection || connection.losesRequests) return undefined
      return this.#engine.submit(operation)
    })
    const outcome = await Promise.race([
      connection.broken,
      sent.then(reply => (connection.losesRequests || connection.losesReplies ? never : reply)),
    ])
    if ('request' in operation) {
      const { id } = operation.request
      if ((outcome as { state?: string } | undefined)?.state === 'queued')
        this.#waiting.set(id, operation.request)
      else this.#waiting.delete(id)
    }
    return outcome as OutcomeOf<O>
  }

  async leave(): Promise<void> {
    await this.#line.arrived()
    await this.#engine.leave()
  }

  cut(): void {
    this.#connection?.break()
    this.#connection = undefined
  }

  restore(): void {
    this.#connection ??= new Connection(this.name)
    for (const id of this.#waiting.keys()) this.#listener?.wake(id)
    this.#listener?.missed()
  }

  slowDown(delays: Delays): void {
    this.#delays = delays
  }

  swallow(way: 'requests' | 'replies'): void {
    if (!this.#connection) return
    if (way === 'requests') this.#connection.losesRequests = true
    else this.#connection.losesReplies = true
  }

  #way(): Promise<void> {
    const { way } = this.#delays
    return new Promise(resolve => (way > 0 ? setTimeout(resolve, way) : setImmediate(resolve)))
  }
}
