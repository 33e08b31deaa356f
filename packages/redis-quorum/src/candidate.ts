import type { Enqueue, RequestStatus, WaitTerms } from 'signalbox/engine'
import { QuorumGrant, type GrantParts } from './quorum-grant.js'
import { Round, type Mismatch } from './round.js'
import type { Vote } from './vote.js'
import type { Voter } from './voter.js'
import { Votes } from './votes.js'

export interface CandidateParts extends GrantParts {
  /** The request should check in. */
  wake(id: string): void
}

/** A request of this session that asks the servers for their votes until it is granted. */
export class Candidate {
  readonly id: string
  /** Set once enough servers have voted for it. */
  grant: QuorumGrant | undefined
  readonly #parts: CandidateParts
  readonly #votes: Votes
  #round: Round | undefined
  /** Whether its caller knows that it waits. */
  #isQueued = false
  #isLookScheduled = false

  constructor(parts: CandidateParts, operation: Enqueue) {
    this.#parts = parts
    this.#votes = new Votes(parts.electorate, operation)
    this.id = operation.request.id
  }

  /** Asks as many servers as needed for their votes, and the others if that is not enough. */
  enter(): Promise<RequestStatus> {
    return this.#runRound(this.#votes.candidacy.order, this.#firstAsked)
  }

  /** Asks all servers again that may have the request, because enough of them may have reserved it by now. */
  async checkIn({ lease, wait }: WaitTerms): Promise<RequestStatus> {
    const { id, grant } = this
    // Another local caller has its own lease for the grant.
    if (grant)
      return (await grant.renew(lease)) ? { state: 'held', id, number: grant.number } : { state: 'gone' }
    this.#votes.candidacy.lease = lease
    this.#votes.candidacy.wait = wait
    this.#round?.abandon()
    const entered = this.#votes.preferred.filter(({ state }) => state !== 'absent')
    return this.#runRound(
      this.#parts.electorate.numbers.next(),
      entered.length > 0 ? entered : this.#firstAsked,
    )
  }

  /**
   * For a sign of life: returns the votes that it covers, and how many of them the request needs in addition to its
   * held votes. Undefined if the request does not wait. A sign covers no held vote, so this asks its server again. It
   * also enters the missing queues of usual servers, which may be reachable again.
   */
  waiting(): { readonly queued: readonly Vote[]; readonly enough: number } | undefined {
    if (this.grant) return undefined
    const held = this.#votes.all.filter(({ state }) => state === 'held')
    if (!this.#round) {
      this.#enterUsual()
      for (const vote of held) if (!vote.isPending) this.#ask(vote)
    }
    const queued = this.#votes.all.filter(({ state }) => state === 'queued')
    return { queued, enough: this.#votes.needed - held.length }
  }

  /** Removes it from all servers, in any phase. */
  async cancel(): Promise<void> {
    const { electorate } = this.#parts
    const withdrawn = this.#end()
    await electorate.firstAnswers(withdrawn, Math.min(electorate.majority, withdrawn.length))
  }

  /** A server has reserved it. */
  woken(voter: Voter): void {
    const vote = this.#votes.of(voter)
    // The hint is late: the server has voted since, or the request was removed.
    if (vote.isHeld || vote.state === 'absent') return
    vote.isReserved = true
    if (vote.isPending) return
    if (this.#round) this.#round.ask(vote)
    else if (this.grant) this.grant.reserved(vote)
    else this.#wakeIfMajority()
  }

  /**
   * A message says that a server has dropped the request, or that it was taken away. A grant is checked, because the
   * message may be forged.
   */
  dropped(voter: Voter): void {
    if (this.grant) return this.#parts.lost(this.id)
    this.#votes.of(voter).state = 'absent'
    if (!this.#round) this.#scheduleLook()
  }

  /** A request with an earlier place waits behind its vote on a server. */
  contended(voter: Voter): void {
    const vote = this.#votes.of(voter)
    vote.isWanted = true
    // In a round it may still get enough votes, and then the other request has to wait.
    if (!this.#round && !vote.isPending) this.#yieldIfWanted(vote)
  }

  get #firstAsked(): readonly Vote[] {
    return this.#votes.preferred.slice(0, this.#votes.needed)
  }

  /** Runs a round of voting. @param number the proposed number of the grant */
  #runRound(number: number, asked: readonly Vote[]): Promise<RequestStatus> {
    return new Promise((resolve, reject) => {
      this.#round = new Round(this.#votes, this.#parts.electorate, number, {
        granted: given => resolve(this.#granted(given)),
        refused: mismatch => resolve(this.#refused(mismatch)),
        unreachable: failures => reject(this.#unreachable(failures)),
        abandoned: () => resolve({ state: 'gone' }),
        answeredLate: vote => this.#answered(vote),
      })
      this.#round.begin(asked)
    })
  }

  #granted(number: number): RequestStatus {
    this.#round = undefined
    this.grant = new QuorumGrant(this.#votes, number, this.#parts)
    return { state: 'held', id: this.id, number }
  }

  #refused(mismatch: Mismatch | undefined): RequestStatus {
    this.#round = undefined
    if (this.#votes.candidacy.wait === 0 || mismatch) {
      void this.#end()
      return mismatch ?? { state: 'busy' }
    }
    this.#isQueued = true
    this.#parts.electorate.listen()
    this.#enterUsual()
    this.#dropSurplus()
    for (const vote of this.#votes.held) this.#yieldIfWanted(vote)
    const { place, checkInAfter } = this.#votes
    return { state: 'queued', id: this.id, place, checkInAfter, sessionsAhead: [] }
  }

  /**
   * Enters the queues of the usual servers, because earlier requests wait there. One that was late may be reachable
   * again.
   */
  #enterUsual(): void {
    for (const vote of this.#votes.usual) {
      if (vote.state === 'absent' && !vote.isPending) this.#ask(vote)
    }
  }

  #unreachable(failures: readonly Error[]): Error {
    this.#round = undefined
    // If its caller knows that it waits, the request stays, and checks in again by itself.
    if (!this.#isQueued) void this.#end()
    return this.#parts.electorate.unreachable(failures)
  }

  /** Asks one server for its vote while no round is open. */
  #ask(vote: Vote): void {
    vote.ask(this.#parts.electorate.numbers.next(), answer => {
      if (!(answer instanceof Error)) this.#answered(vote)
    })
  }

  /** A server has answered, and no round counts its answer. */
  #answered(vote: Vote): void {
    if (this.grant) return this.grant.reserved(vote)
    this.#dropSurplus()
    this.#yieldIfWanted(vote)
    this.#wakeIfMajority()
  }

  /**
   * Leaves the queues of servers that were asked only because others were late. Earlier requests may not be in these
   * queues, and a release would wake this one instead of them.
   */
  #dropSurplus(): void {
    const { all, held, usual } = this.#votes
    // If a server has voted for it, each further vote may be the missing one.
    if (held.length > 0 || !usual.every(({ isQueued }) => isQueued)) return
    for (const vote of all) if (vote.isQueued && !usual.includes(vote)) void vote.withdraw()
  }

  /**
   * If a request with an earlier place waits for a minority vote, asks its server again: the server then gives that
   * vote to the other request. The server has reported the other request, or may have done so while its hints were not
   * received.
   */
  #yieldIfWanted(vote: Vote): void {
    if (vote.state !== 'held' || this.grant) return
    if (vote.isWanted) return this.#ask(vote)
    if (vote.receivesHints) return
    const { asked } = vote
    const again = (): void => {
      if (vote.asked === asked && !this.grant) this.#ask(vote)
    }
    // Without hints, the next check-in finds out.
    vote.voter.listen().then(again, () => undefined)
  }

  /** Lets the request check in: at once if held and reserved votes may be enough, and soon if any vote is reserved. */
  #wakeIfMajority(): void {
    const hopeful = this.#votes.all.filter(({ state, isReserved }) => state === 'held' || isReserved)
    if (hopeful.length >= this.#votes.needed) this.#parts.wake(this.id)
    else if (hopeful.some(({ isReserved }) => isReserved)) this.#scheduleLook()
  }

  /** Lets the request check in a little later, when other servers may have reserved it, too. */
  #scheduleLook(): void {
    if (this.#isLookScheduled) return
    this.#isLookScheduled = true
    this.#parts.electorate.whenLate(() => {
      this.#isLookScheduled = false
      if (!this.#votes.isWithdrawn && !this.#round && !this.grant) this.#parts.wake(this.id)
    })
  }

  #end(): Promise<void>[] {
    this.#round?.abandon()
    this.#round = undefined
    this.#parts.ended(this.id)
    return this.#votes.withdraw()
  }
}
