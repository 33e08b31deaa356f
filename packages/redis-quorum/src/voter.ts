import { UnavailableError } from 'signalbox'
import {
  HEARTBEAT_INTERVAL,
  Reconnector,
  retryUntilExpired,
  type Clock,
  type Inspect,
  type Listener,
  type LockRequest,
  type Operation,
  type OutcomeOf,
  type SessionInfo,
} from 'signalbox/engine'
import type { IdentifiedReport, RedisServer, VoteTerms } from 'signalbox/redis'
import type { NumberClock } from './number-clock.js'

/** A server's clock may run faster than the clock of this process by this fraction, and by this many milliseconds. */
const DRIFT = 0.01
const MIN_DRIFT = 2

/** Returns the lease for the servers, with a margin for the drift of their clocks: it must not end there first. */
export function leaseOnServer(lease: number): number {
  // mutant: lease-ends-on-server-first
  return lease * (1 + DRIFT) + MIN_DRIFT
}

/** Returns the remaining lease here, by the remaining lease on a server. */
function leaseHere(left: number): number {
  return Math.max(0, (left - MIN_DRIFT) / (1 + DRIFT))
}

/** One of the servers. If it is down when the box is opened, attempts to join it continue. */
export class Voter {
  readonly name: string
  /** Whether it answered late, or not at all, when it was asked last. Other servers are asked before it. */
  isLate = false
  /** Whether its hints are received. */
  receivesHints = false
  /** The greatest number that it is known to have. */
  greatest = 0
  readonly #server: RedisServer
  readonly #clock: Clock
  readonly #numbers: NumberClock
  #joined: Reconnector<RedisServer> | undefined
  /** Settles when the first attempt to join is over; undefined after that. */
  #firstAttempt: Promise<void> | undefined
  #listening: Promise<void> | undefined
  #failure: unknown

  constructor(server: RedisServer, numbers: NumberClock, clock: Clock) {
    this.#server = server
    this.#numbers = numbers
    this.#clock = clock
    this.name = server.name
  }

  /** Settles as the first attempt does. When that fails, further attempts follow in the background. */
  async join(member: SessionInfo, listener: Listener): Promise<void> {
    const joined = new Reconnector(() => this.#attempt(member, listener), this.#clock)
    this.#joined = joined
    const attempt = Promise.resolve(joined.get())
    this.#firstAttempt = attempt.then(
      () => {
        this.#firstAttempt = undefined
      },
      () => {
        this.#firstAttempt = undefined
        // mutant: joins-once
        joined.connectSoon()
      },
    )
    await attempt
  }

  /** Rejects as the engine of the server does. */
  submit<O extends Operation>(operation: O, vote?: VoteTerms): Promise<OutcomeOf<O>> {
    return this.#once(server => server.submit(operation, vote))
  }

  /**
   * Removes a request in any phase, see {@link retryUntilExpired}.
   * @param lease by the clock of its caller, in milliseconds
   * @param isCovered whether signs of life keep it beyond its lease, so that it must be removed whenever the server is
   * back.
   */
  async withdraw(request: LockRequest, lease: number, isCovered = false): Promise<void> {
    await retryUntilExpired(
      () => this.submit({ type: 'cancel', request }),
      leaseOnServer(lease),
      this.#clock,
      () => this.#joined!.isClosed,
      isCovered ? HEARTBEAT_INTERVAL : undefined,
    )
  }

  listen(): Promise<void> {
    this.#listening ??= this.#once(server => server.listen()).then(
      () => {
        this.receivesHints = true
      },
      (error: unknown) => {
        this.#listening = undefined
        throw error
      },
    )
    return this.#listening
  }

  /** Returns the requests for these keys, with leases by the clocks of their callers. */
  async reports(inspect: Inspect): Promise<readonly IdentifiedReport[]> {
    const reports = await this.#once(server => server.reports(inspect))
    return reports.map(report => ({ ...report, expiresIn: leaseHere(report.expiresIn) }))
  }

  /** It has voted with this number. */
  voted(number: number): void {
    this.greatest = Math.max(this.greatest, number)
    this.#numbers.observe(number)
  }

  /** Makes all numbers that it gives from now on greater than `least`. */
  async raise(least: number): Promise<void> {
    await this.#once(server => server.raise(least))
    this.greatest = Math.max(this.greatest, least)
  }

  async leave(): Promise<void> {
    // Not awaited, because an attempt that is under way ends with the engine.
    void this.#joined?.close()
    await this.#server.leave()
  }

  async #attempt(member: SessionInfo, listener: Listener): Promise<RedisServer> {
    try {
      await this.#server.join(member, listener)
      return this.#server
    } catch (error) {
      this.#failure = error
      this.isLate = true
      throw error
    }
  }

  /** Runs a task if the server is joined. Waits for the first attempt to join, and for no later one. */
  #once<T>(task: (server: RedisServer) => Promise<T>): Promise<T> {
    if (this.#firstAttempt) return this.#firstAttempt.then(() => this.#once(task))
    const server = this.#joined?.now
    if (server) return task(server)
    return Promise.reject(
      new UnavailableError(`not yet connected to ${this.name}`, { engine: this.name, cause: this.#failure }),
    )
  }
}
