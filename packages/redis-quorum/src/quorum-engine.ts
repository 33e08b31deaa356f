import { InvalidArgumentError } from 'signalbox'
import {
  boxClosed,
  inTime,
  type Clock,
  type Engine,
  type Enqueue,
  type ExtendOrYield,
  type Granted,
  type Listener,
  type Operation,
  type OutcomeOf,
  type RequestStatus,
  type SessionInfo,
  type SweepExpired,
} from 'signalbox/engine'
import type { RedisServer } from 'signalbox/redis'
import { Candidate, type CandidateParts } from './candidate.js'
import { Electorate } from './electorate.js'
import { quorumGuarantees } from './guarantees.js'
import { NumberClock } from './number-clock.js'
import type { QuorumGrant } from './quorum-grant.js'
import { QuorumOperator } from './quorum-operator.js'
import { QuorumSigns } from './quorum-signs.js'
import { Voter } from './voter.js'

/** How long a closing box waits for servers that do not answer, in milliseconds. */
const LEAVE_WITHIN = 1000

export interface QuorumParts {
  /** For messages: the URL without passwords. */
  readonly name: string
  readonly servers: readonly RedisServer[]
  readonly clock: Clock
  readonly numbers?: NumberClock
}

/**
 * Locks over several independent Redis servers: a request with the votes of a majority has the lock, as in Redlock.
 * Every server has the lock table with its queues, and all of them have the same order in their queues. So competing
 * requests agree on which is first, and waiters are woken. A request without a majority yields votes that it got too
 * early, as in Maekawa's algorithm. A majority is asked first, so a short lock costs three servers of five.
 */
export class QuorumEngine implements Engine {
  readonly name: string
  readonly guarantees = quorumGuarantees
  readonly reportsContention = false
  readonly coversBySigns = true
  readonly #clock: Clock
  readonly #electorate: Electorate
  readonly #operator: QuorumOperator
  readonly #signs: QuorumSigns
  readonly #parts: CandidateParts
  readonly #candidates = new Map<string, Candidate>()
  #listener: Listener | undefined

  constructor({ name, servers, clock, numbers = new NumberClock() }: QuorumParts) {
    this.name = name
    this.#clock = clock
    const voters = servers.map(server => new Voter(server, numbers, clock))
    this.#electorate = new Electorate(name, voters, numbers, clock)
    this.#operator = new QuorumOperator(this.#electorate)
    this.#signs = new QuorumSigns(this.#electorate, id => this.#candidates.get(id))
    this.#parts = {
      electorate: this.#electorate,
      wake: id => this.#listener?.wake(id),
      lost: id => this.#listener?.lost(id),
      ended: id => void this.#candidates.delete(id),
    }
  }

  async join(member: SessionInfo, listener: Listener): Promise<void> {
    const { majority, voters } = this.#electorate
    const joined = voters.map(voter => voter.join(member, this.#listenerFor(voter)))
    try {
      // Nothing was requested yet, so the servers can't have changed anything.
      await this.#electorate.firstAnswers(joined, majority, ({ failures }) =>
        this.#electorate.unreachable(failures),
      )
    } catch (error) {
      await this.#leaveAll()
      throw error
    }
    this.#listener = listener
  }

  submit<O extends Operation>(operation: O): Promise<OutcomeOf<O>>
  submit(operation: Operation): Promise<unknown> {
    if (!this.#listener) return Promise.reject(boxClosed(this.name))
    switch (operation.type) {
      case 'enqueue':
        return operation.read ? this.#keepsNoValues() : this.#enqueue(operation)
      case 'checkIn':
        return operation.read
          ? this.#keepsNoValues()
          : (this.#candidates.get(operation.request.id)?.checkIn(operation) ?? GONE)
      case 'alive':
        return this.#signs.send(operation)
      case 'cancel':
        return this.#candidates.get(operation.request.id)?.cancel() ?? Promise.resolve()
      case 'renew':
        return this.#grant(operation)?.renew(operation.lease) ?? NO
      case 'release':
        return this.#grant(operation)?.release() ?? NO
      case 'downgrade':
        return this.#grant(operation)?.downgrade() ?? NO
      case 'extendOrYield':
        return this.#extendOrYield(operation)
      case 'sweepExpired':
        return this.#sweepExpired(operation)
      case 'revoke':
        return this.#operator.revoke(operation)
      case 'forceRelease':
        return this.#operator.forceRelease(operation)
      case 'inspect':
        return this.#operator.inspect(operation)
      case 'read':
      case 'list':
      case 'commit':
      case 'watch':
      case 'unwatch':
        return this.#keepsNoValues()
    }
  }

  async leave(): Promise<void> {
    if (!this.#listener) return
    this.#listener = undefined
    await this.#leaveAll()
  }

  #grant({ request, number }: Granted): QuorumGrant | undefined {
    const grant = this.#candidates.get(request.id)?.grant
    return grant?.number === number ? grant : undefined
  }

  #enqueue(operation: Enqueue): Promise<RequestStatus> {
    const known = this.#candidates.get(operation.request.id)
    if (known) return known.checkIn(operation)
    const candidate = new Candidate(this.#parts, operation)
    this.#candidates.set(candidate.id, candidate)
    return candidate.enter()
  }

  /** Each server gets both in one call. So a waiting request comes first, and no other request gets in between. */
  async #extendOrYield({ request, number, next, lease, wait }: ExtendOrYield): Promise<RequestStatus> {
    const grant = this.#grant({ request, number })
    if (!grant) return { state: 'gone' }
    const released = grant.release()
    const entered = this.#enqueue({ type: 'enqueue', request: next, lease, wait })
    entered.catch(() => undefined)
    if (await released) return entered
    await this.#candidates.get(next.id)?.cancel()
    return { state: 'gone' }
  }

  async #sweepExpired(operation: SweepExpired): Promise<void> {
    const { majority, voters } = this.#electorate
    const expired = voters.map(voter => voter.submit(operation))
    await this.#electorate.firstAnswers(expired, majority)
  }

  #listenerFor(voter: Voter): Listener {
    return {
      wake: id => this.#candidates.get(id)?.woken(voter),
      lost: id => this.#candidates.get(id)?.dropped(voter),
      contended: id => this.#candidates.get(id)?.contended(voter),
      reserved: key => this.#listener?.reserved(key),
      changed: () => undefined,
      missed: () => undefined,
      ended: () => undefined,
    }
  }

  async #leaveAll(): Promise<void> {
    const left = Promise.allSettled(this.#electorate.voters.map(voter => voter.leave()))
    await inTime(left, LEAVE_WITHIN, this.#clock, () => new Error('not in time')).catch(() => undefined)
  }

  #keepsNoValues(): Promise<never> {
    return Promise.reject(
      new InvalidArgumentError(
        `${this.name} keeps only locks, not values; open a box on one server (redis://) for the store, and check a ` +
          "grant's token there",
        { engine: this.name },
      ),
    )
  }
}

const GONE = Promise.resolve<RequestStatus>({ state: 'gone' })
const NO = Promise.resolve(false)
