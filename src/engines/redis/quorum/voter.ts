import type { Clock, Timer } from '../../../clock.js'
import { UnavailableError } from '../../../errors.js'
import type { Listener, LockRequest, SessionInfo, Operation, OutcomeOf } from '../../../engine/contract.js'
import { giveBack } from '../../../engine/give-back.js'
import type { Ballot } from '../ballot.js'
import type { IdentifiedReport } from '../operator.js'

/** What a quorum needs of the engine of one server. */
export interface VotingEngine {
  readonly name: string
  join(member: SessionInfo, listener: Listener): Promise<void>
  submit<O extends Operation>(operation: O, ballot?: Ballot): Promise<OutcomeOf<O>>
  listen(): Promise<void>
  reports(prefix: string): Promise<readonly IdentifiedReport[]>
  raise(least: number): Promise<void>
  leave(): Promise<void>
}

/** The pause before a further attempt to reach a server grows from the first to the second of these: milliseconds. */
const SHORTEST_PAUSE = 50
const LONGEST_PAUSE = 2000

/** One of the servers. It may be down when the box is opened, and is tried until it is there. */
export class Voter {
  readonly name: string
  /** Whether it answered late or not at all when it was asked last; others are asked before it. */
  isOverdue = false
  /** Whether its hints are heard. */
  isHeard = false
  /** The greatest number that it is known to have. */
  greatest = 0
  readonly #engine: VotingEngine
  readonly #clock: Clock
  #isJoined = false
  /** The first attempt to reach it, while that is under way: what is asked meanwhile waits for it. */
  #joining: Promise<void> | undefined
  #hasLeft = false
  #listening: Promise<void> | undefined
  #retry: Timer | undefined
  #failure: unknown

  constructor(engine: VotingEngine, clock: Clock) {
    this.#engine = engine
    this.#clock = clock
    this.name = engine.name
  }

  /** Settles as the first attempt does. Where that fails, others follow. */
  join(member: SessionInfo, listener: Listener): Promise<void> {
    const joining = this.#attempt(member, listener, SHORTEST_PAUSE)
    const settled = (): void => {
      this.#joining = undefined
    }
    this.#joining = joining.then(settled, settled)
    return joining
  }

  /** Rejects as the engine of the server does. */
  submit<O extends Operation>(operation: O, ballot?: Ballot): Promise<OutcomeOf<O>> {
    if (this.#joining) return this.#joining.then(() => this.submit(operation, ballot))
    return this.#isJoined ? this.#engine.submit(operation, ballot) : Promise.reject(this.#notJoined())
  }

  /**
   * Takes a request out, whatever became of it, see {@link giveBack}.
   * @param lease milliseconds
   */
  async withdraw(request: LockRequest, lease: number): Promise<void> {
    await giveBack(
      () => this.submit({ type: 'cancel', request }),
      lease,
      this.#clock,
      () => this.#hasLeft,
    )
  }

  /** Hears hints from when the promise settles. */
  listen(): Promise<void> {
    if (!this.#isJoined) return Promise.reject(this.#notJoined())
    this.#listening ??= this.#engine.listen().then(
      () => {
        this.isHeard = true
      },
      (error: unknown) => {
        this.#listening = undefined
        throw error
      },
    )
    return this.#listening
  }

  reports(prefix: string): Promise<readonly IdentifiedReport[]> {
    return this.#isJoined ? this.#engine.reports(prefix) : Promise.reject(this.#notJoined())
  }

  /** Makes all numbers that the server gives from now on greater than `least`. */
  raise(least: number): Promise<void> {
    return this.#isJoined ? this.#engine.raise(least) : Promise.reject(this.#notJoined())
  }

  async leave(): Promise<void> {
    this.#hasLeft = true
    this.#retry?.cancel()
    await this.#engine.leave()
  }

  async #attempt(member: SessionInfo, listener: Listener, pause: number): Promise<void> {
    try {
      await this.#engine.join(member, listener)
      this.#isJoined = true
    } catch (error) {
      this.#failure = error
      this.isOverdue = true
      if (!this.#hasLeft) this.#tryAgain(member, listener, pause)
      throw error
    }
  }

  #tryAgain(member: SessionInfo, listener: Listener, pause: number): void {
    const next = Math.min(2 * pause, LONGEST_PAUSE)
    const again = (): void => {
      this.#attempt(member, listener, next).catch(() => undefined)
    }
    this.#retry = this.#clock.after(pause * (0.5 + Math.random() / 2), again, false)
  }

  #notJoined(): UnavailableError {
    return new UnavailableError(`${this.name} was not reached yet`, {
      engine: this.name,
      cause: this.#failure,
    })
  }
}
