import { IndeterminateError, InvalidArgumentError, UnavailableError, type SignalboxError } from 'signalbox'
import type { Clock } from 'signalbox/engine'
import type { NumberClock } from './number-clock.js'
import { majorityOf } from './tally.js'
import type { Voter } from './voter.js'

/** Time without a reply after which a server is late and others are asked, if there are any, in milliseconds. */
const LATE_AFTER = 20
/** Further time after which a late server counts as unreachable, in milliseconds. */
const OUT_OF_REACH_AFTER = 1000
/** Age at which a grant is also requested at the servers whose votes it did not need, in milliseconds. */
const COMPLETE_AFTER = 5
/** Time after a grant at which the servers without a vote in it are sent its number, in milliseconds. */
const RAISE_AFTER = 100

/** The answers of the servers that were asked, so far. */
export interface Answers<Answer> {
  readonly answers: readonly Answer[]
  readonly failures: readonly Error[]
  readonly pending: number
  /** Whether the pending ones are late. */
  readonly isLate: boolean
  /** Whether the pending ones count as unreachable. */
  readonly isOver: boolean
}

/** The servers of a quorum, and how they are asked. */
export class Electorate {
  readonly majority: number
  readonly #clock: Clock
  /** The servers in all rotations, each of which begins with another server. */
  readonly #rotations: readonly (readonly Voter[])[]
  #isRaising = false

  /** @param name for messages: the URL without passwords. */
  constructor(
    readonly name: string,
    readonly voters: readonly Voter[],
    readonly numbers: NumberClock,
    clock: Clock,
  ) {
    this.majority = majorityOf(voters.length)
    this.#clock = clock
    this.#rotations = voters.map((_, first) => [...voters.slice(first), ...voters.slice(0, first)])
  }

  /**
   * Returns the servers in the order in which they are asked about a key. All requests for a key begin with the same
   * servers, so that they compete for the same votes. Different keys begin with different servers, which spreads the
   * load.
   */
  inOrder(key: string): readonly Voter[] {
    return this.#rotations[hashOf(key) % this.voters.length]!
  }

  /** Subscribes to the hints of all servers. If that fails, waiters check in at regular intervals. */
  listen(): void {
    for (const voter of this.voters) if (!voter.receivesHints) voter.listen().catch(() => undefined)
  }

  /** Runs a task when servers that are asked now, and have not answered, are late. */
  whenLate(task: () => void): void {
    this.#after(LATE_AFTER, task)
  }

  /** Runs a task when servers that are late now, and have not answered, count as unreachable. */
  whenOutOfReach(task: () => void): void {
    this.#after(OUT_OF_REACH_AFTER, task)
  }

  /** Sends a new grant to the servers that have no vote in it: its number, and, if it is held for long, the request. */
  spread(complete: () => void): void {
    this.#after(COMPLETE_AFTER, complete)
    if (this.#isRaising) return
    this.#isRaising = true
    this.#after(RAISE_AFTER, () => this.#raiseAll())
  }

  /**
   * Settles as soon as the answers of several servers make the outcome certain, without waiting for the other servers.
   * @param decide returns the outcome, or undefined while it is open.
   * @param failed returns the error when the outcome stays open, or undefined to wait for the pending servers, whose
   * own clients end the wait.
   */
  outcome<Answer, Outcome>(
    asked: readonly Promise<Answer>[],
    decide: (state: Answers<Answer>) => Outcome | undefined,
    failed = (state: Answers<Answer>): Error | undefined => this.unclear(state),
  ): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      const answers: Answer[] = []
      const failures: Error[] = []
      let isLate = false
      let isOver = false
      let isOpen = true
      const weigh = (): void => {
        if (!isOpen) return
        const pending = asked.length - answers.length - failures.length
        const state = { answers, failures, pending, isLate, isOver }
        const outcome = decide(state)
        const failure = outcome === undefined && (pending === 0 || isOver) ? failed(state) : undefined
        isOpen = outcome === undefined && failure === undefined
        if (outcome !== undefined) resolve(outcome)
        else if (failure) reject(failure)
      }
      const answered = (answer: Answer): unknown => answers.push(answer)
      const rejected = (error: unknown): unknown => failures.push(error as Error)
      for (const each of asked) void each.then(answered, rejected).then(weigh)
      weigh()
      if (!isOpen) return
      this.whenLate(() => {
        isLate = true
        weigh()
        if (!isOpen) return
        this.whenOutOfReach(() => {
          isOver = true
          weigh()
        })
      })
    })
  }

  /** Settles with the first `enough` answers. */
  firstAnswers<Answer>(
    asked: readonly Promise<Answer>[],
    enough: number,
    failed?: (state: Answers<Answer>) => Error | undefined,
  ): Promise<readonly Answer[]> {
    return this.outcome(asked, ({ answers }) => (answers.length >= enough ? answers : undefined), failed)
  }

  /** The error when too few servers answer, and nothing was done. */
  unreachable(failures: readonly Error[]): SignalboxError {
    const refused = failures.find(failure => failure instanceof InvalidArgumentError)
    if (refused) return refused
    return new UnavailableError(this.#tooFew(failures), { engine: this.name, cause: failures[0] })
  }

  /** The error when too few servers answer to know whether anything was done. */
  unclear({ answers, failures, pending }: Answers<unknown>): SignalboxError {
    const isUndone = answers.length === 0 && pending === 0
    if (isUndone && failures.every(failure => failure instanceof UnavailableError)) {
      return this.unreachable(failures)
    }
    return new IndeterminateError(this.#tooFew(failures), { engine: this.name, cause: failures[0] })
  }

  /** Does not keep the process alive: a caller that waits has a connection or a timer of its own for that. */
  #after(delay: number, task: () => void): void {
    this.#clock.after(delay, task, false)
  }

  #tooFew(failures: readonly Error[]): string {
    const reasons = [...new Set(failures.map(({ message }) => message))]
    const few = `fewer than ${this.majority} of the ${this.voters.length} servers of ${this.name} answered`
    return reasons.length > 0 ? `${few}: ${reasons.join('; ')}` : few
  }

  /**
   * Sends the greatest number to all servers, because one without a vote in a grant may be the only one that keeps its
   * data until the next grant.
   */
  #raiseAll(): void {
    this.#isRaising = false
    const greatest = Math.max(...this.voters.map(voter => voter.greatest))
    for (const voter of this.voters) {
      if (voter.greatest < greatest) voter.raise(greatest).catch(() => undefined)
    }
  }
}

/** FNV-1a over the code units: the same in every process. */
function hashOf(key: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < key.length; index++) {
    hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193)
  }
  return hash >>> 0
}
