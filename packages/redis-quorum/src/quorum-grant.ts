import { sharedClaims } from 'signalbox/engine'
import type { Answers, Electorate } from './electorate.js'
import type { Vote } from './vote.js'
import type { Votes } from './votes.js'

export interface GrantParts {
  readonly electorate: Electorate
  /** The grant may have been taken away: the box renews it to find out. */
  lost(id: string): void
  /** The request has ended, although the withdrawal of its votes may be under way. */
  ended(id: string): void
}

/** A grant: a request that enough servers have voted for. It is held as long as a majority has it. */
export class QuorumGrant {
  readonly number: number
  readonly #votes: Votes
  readonly #parts: GrantParts

  constructor(votes: Votes, number: number, parts: GrantParts) {
    this.#votes = votes
    this.number = number
    this.#parts = parts
    // From now on no server queues it, because the grant needs no further votes.
    votes.candidacy.wait = 0
    if (votes.all.some(({ state }) => state === 'absent')) parts.electorate.spread(() => this.#complete())
  }

  /** True when a majority has renewed the lease. */
  renew(lease: number): Promise<boolean> {
    this.#votes.candidacy.lease = lease
    const renewed = this.#votes.held.map(vote => vote.renew(this.number))
    this.#complete()
    return this.#isHeldBy(renewed)
  }

  /** True when a majority has made it shared. */
  downgrade(): Promise<boolean> {
    const { candidacy } = this.#votes
    const { claims } = candidacy.request
    const downgraded = this.#votes.held.map(vote => vote.downgrade())
    // The others are asked again with shared claims.
    for (const vote of this.#votes.all) if (!vote.isHeld) void vote.withdraw()
    candidacy.request = { ...candidacy.request, claims: sharedClaims(claims) }
    return this.#isHeldBy(downgraded)
  }

  /**
   * True when a majority had it until now. Settles when as many servers are free as the next requests need, if those
   * servers answer in time.
   */
  release(): Promise<boolean> {
    const { electorate } = this.#parts
    const { majority, voters } = electorate
    const released = this.#votes.held.map(vote => vote.release())
    void this.#votes.withdraw()
    this.#parts.ended(this.#votes.candidacy.request.id)
    const decide = ({ answers, failures, pending, isLate }: Answers<boolean>): boolean | undefined => {
      const gone = answers.filter(wasHeld => !wasHeld).length
      const isPatient = pending > 0 && !isLate
      if (answers.length - gone >= (isPatient ? this.#votes.needed : majority)) return true
      if (released.length - gone < majority) return false
      // Others can already get a majority, and no server reports that the grant was lost before.
      const isFree = pending + failures.length <= voters.length - majority
      return isFree && gone === 0 && !isPatient ? true : undefined
    }
    return electorate.outcome(released, decide)
  }

  /** A server has reserved the request, or has answered a question from before the grant. */
  reserved(vote: Vote): void {
    const isWaiting = vote.state === 'queued' || vote.state === 'unknown'
    if (vote.isReserved && isWaiting && !vote.isPending) this.#ask(vote)
  }

  /** Asks the servers that have not voted for it to do so. */
  #complete(): void {
    if (this.#votes.isWithdrawn) return
    for (const vote of this.#votes.all) if (vote.state !== 'held' && !vote.isPending) this.#ask(vote)
  }

  #ask(vote: Vote): void {
    vote.ask(this.number, () => this.reserved(vote))
  }

  /** Whether a majority still has it, according to the servers that had it. */
  #isHeldBy(asked: readonly Promise<boolean>[]): Promise<boolean> {
    const { electorate } = this.#parts
    const { majority } = electorate
    const decide = ({ answers }: Answers<boolean>): boolean | undefined => {
      const gone = answers.filter(isHeld => !isHeld).length
      if (answers.length - gone >= majority) return true
      return asked.length - gone < majority ? false : undefined
    }
    return electorate.outcome(asked, decide)
  }
}
