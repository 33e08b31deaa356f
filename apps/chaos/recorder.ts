import type { Fault, History, LockRequest, Stall, StoreCall, Transfer, Update } from './history.js'
import { systemClock } from 'signalbox/engine'
import type { FromClient } from './protocol.js'

/** Records the messages of clients. */
export class Recorder {
  readonly faults: Fault[] = []
  readonly requests: LockRequest[] = []
  readonly transfers: Transfer[] = []
  readonly calls: StoreCall[] = []
  readonly #origin = systemClock.now()
  readonly #updates: Update[] = []
  readonly #stalls: Stall[] = []
  readonly #escapes: string[] = []
  readonly #open = new Map<string, LockRequest | Transfer | StoreCall>()
  readonly #onGrant = new Set<(request: LockRequest) => void>()

  /** Milliseconds since the start of the run. */
  get now(): number {
    return this.since(systemClock.now())
  }

  /** Converts a time of the monotonic clock to milliseconds since the start of the run, rounded to the microsecond. */
  since(at: number): number {
    return Math.round((at - this.#origin) * 1000) / 1000
  }

  /** Records a message of a client. {@link updated} records writes to the resource. */
  receive(who: string, message: FromClient): void {
    switch (message.say) {
      case 'asked':
        this.requests.push(
          this.#opened(who, message.call, { who, key: message.key, asked: this.since(message.at) }),
        )
        return
      case 'transfer': {
        const { transfer } = message
        this.transfers.push(
          this.#opened(who, message.call, { ...transfer, asked: this.since(transfer.asked) }),
        )
        return
      }
      case 'storeCall': {
        const { storeCall } = message
        this.calls.push(this.#opened(who, message.call, { ...storeCall, from: this.since(storeCall.from) }))
        return
      }
      case 'seen':
        for (const label of message.labels) {
          // Absent while the message of its client is still under way.
          const request = this.#open.get(label) as LockRequest | undefined
          if (request) request.queued ??= this.since(message.at)
        }
        return
      case 'granted':
        return this.#granted(this.#request(who, message.call), this.since(message.at), message.token)
      case 'held':
        this.#request(who, message.call).heldUntil = this.since(message.at)
        return
      case 'leaving':
        this.#request(who, message.call).leaving = this.since(message.at)
        return
      case 'left':
        Object.assign(this.#request(who, message.call), { left: this.since(message.at), end: message.end })
        return
      case 'transferred': {
        const { say: _say, call, at, ...rest } = message
        Object.assign(this.#open.get(`${who} ${call}`)!, { settled: this.since(at), ...rest })
        return
      }
      case 'storeCalled': {
        const { say: _say, call, at, ...rest } = message
        Object.assign(this.#open.get(`${who} ${call}`)!, { until: this.since(at), ...rest })
        return
      }
      case 'stalled':
        return this.stalled(message.from, message.until, who)
      case 'escaped':
      case 'failed':
        this.escaped(`${who}: ${message.message}`)
        return
      case 'ready':
      case 'shifted':
      case 'read':
      case 'write':
    }
  }

  updated(updates: readonly Update[]): void {
    this.#updates.push(...updates)
  }

  /** Records a stall. @param who is absent for the harness. */
  stalled(from: number, until: number, who?: string): void {
    this.#stalls.push({ ...(who !== undefined && { who }), from: this.since(from), until: this.since(until) })
  }

  escaped(message: string): void {
    this.#escapes.push(message)
  }

  /** Returns the keys that a client holds and has not begun to release. */
  heldBy(who: string): string[] {
    return this.requests
      .filter(one => one.who === who && one.granted !== undefined && one.leaving === undefined && !one.end)
      .map(({ key }) => key)
  }

  /** Calls `listener` with every grant. Returns a function that stops it. */
  onGrant(listener: (request: LockRequest) => void): () => void {
    this.#onGrant.add(listener)
    return () => this.#onGrant.delete(listener)
  }

  history(rest: Pick<History, 'lease' | 'limits' | 'accounts' | 'counters'>): History {
    return {
      ...rest,
      requests: this.requests,
      // A copy, so that it agrees with the counters even if a client that did not end continues to write.
      updates: [...this.#updates],
      transfers: this.transfers,
      calls: this.calls,
      faults: this.faults,
      stalls: this.#stalls,
      escapes: this.#escapes,
    }
  }

  #granted(request: LockRequest, at: number, token: string | undefined): void {
    request.granted = at
    request.heldUntil = at
    if (token !== undefined) request.token = token
    for (const listener of this.#onGrant) listener(request)
  }

  #opened<T extends LockRequest | Transfer | StoreCall>(who: string, call: number, record: T): T {
    this.#open.set(`${who} ${call}`, record)
    return record
  }

  #request(who: string, call: number): LockRequest {
    return this.#open.get(`${who} ${call}`) as LockRequest
  }
}
