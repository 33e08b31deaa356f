import { UnavailableError } from '../../../errors.js'
import type { Enqueue, LockRequest, Patience, RequestStatus } from '../../../engine/contract.js'
import type { Ballot } from '../ballot.js'
import type { Electorate } from './electorate.js'
import { poll, type PollState } from './poll.js'
import { Round } from './round.js'
import { verdictOf, votesNeeded, type Tally } from './tally.js'
import { Vote } from './vote.js'

/** Servers count leases by clocks of their own, which may run faster than ours by this part, and two milliseconds. */
const DRIFT = 0.01
const LEAST_DRIFT = 2

/** A server that could not be asked, and whose vote is all that is lacking, is tried again so soon: milliseconds. */
const LACKING_LOOKS = 500
/** Leases of one holder end on the servers within so many milliseconds; one look is enough for all of them. */
const TOGETHER = 50

/** What a candidate needs of its engine. */
export interface CandidateParts {
  readonly electorate: Electorate
  /** Says that a look at this request is worth while. */
  readonly wake: (id: string) => void
  /** Says that a grant was taken away. */
  readonly lost: (id: string) => void
  /** Told when it has been given a grant that not all servers have heard of. */
  readonly elected: (candidate: Candidate) => void
  /** Told when nothing of it is left but what is being taken back. */
  readonly ended: (candidate: Candidate) => void
  /** The error when too few answer to give a grant. */
  readonly unreachable: (failures: readonly Error[]) => Error
  /** The error when too few answer to say what was done. */
  readonly unclear: (state: PollState<unknown>) => Error
}

/** How long a lease is on the servers, so that it does not end there before it does here. */
function leaseThere(lease: number): number {
  return lease * (1 + DRIFT) + LEAST_DRIFT
}

/** What is left here of a lease of which so much is left on a server. */
export function leaseHere(left: number): number {
  return Math.max(0, (left - LEAST_DRIFT) / (1 + DRIFT))
}

/** A request of this session, and what each server has of it. */
export class Candidate {
  readonly id: string
  readonly order: number
  /** Of its grant, once a majority has voted for it. */
  number: number | undefined
  readonly #parts: CandidateParts
  readonly #electorate: Electorate
  /** With shared claims after a downgrade. */
  #request: LockRequest
  #lease: number
  #wait: number
  readonly #votes: readonly Vote[]
  /** So many votes make it a grant. */
  readonly #needed: number
  #round: Round | undefined
  #isEnded = false
  /** Whether whoever asked has been told that it waits. */
  #isQueued = false
  /** Whether a look has been called for that comes a little later, together with others. */
  #isStirring = false

  constructor(parts: CandidateParts, { request, lease, wait }: Enqueue) {
    this.#parts = parts
    this.#electorate = parts.electorate
    this.#request = request
    this.id = request.id
    this.order = parts.electorate.numbers.next()
    this.#lease = lease
    this.#wait = wait
    this.#votes = parts.electorate.voters.map(() => new Vote())
    const permits = request.claims.map(claim => (claim.mode === 'permits' ? claim.max : 1))
    this.#needed = votesNeeded(this.#votes.length, Math.max(...permits))
  }

  /** Asks as many as are needed for their votes, and the others when those do not suffice. */
  enter(): Promise<RequestStatus> {
    return this.#begin(this.order, this.#preference().slice(0, this.#needed))
  }

  /** Asks all servers anew that have anything of it, for what is reserved may have become a majority. */
  look({ lease, wait }: Patience): Promise<RequestStatus> {
    if (this.number !== undefined) return this.#lookAtGrant(this.number, lease)
    this.#lease = lease
    this.#wait = wait
    this.#round?.resolve({ state: 'gone' })
    const entered = this.#preference().filter(index => this.#votes[index]!.isEntered)
    const asked = entered.length > 0 ? entered : this.#preference().slice(0, this.#needed)
    return this.#begin(this.#electorate.numbers.next(), asked)
  }

  /** True when a majority has renewed the lease. */
  async renew(number: number, lease: number): Promise<boolean> {
    if (this.number !== number || this.#isEnded) return false
    this.#lease = lease
    const held = this.#held()
    const renewed = held.map(async index => {
      const vote = this.#votes[index]!
      const { asked } = vote
      // A server that gave its vote with a lesser number than the grant has got is raised on the way.
      const ballot = vote.number < number ? { order: this.order, least: number } : undefined
      const { number: voted } = vote
      const renewal = {
        type: 'renew',
        request: this.#request,
        number: voted,
        lease: leaseThere(lease),
      } as const
      const done = await this.#electorate.voters[index]!.submit(renewal, ballot)
      if (vote.asked === asked && vote.state === 'held') this.#renewed(index, done, ballot)
      return done
    })
    this.#complete()
    return this.#stillHeld(renewed, held.length)
  }

  /**
   * True when a majority had held it until now. Settles when those who ask next find so many servers free as they need, where
   * these answer in time.
   */
  async release(number: number): Promise<boolean> {
    if (this.number !== number || this.#isEnded) return false
    const held = this.#held()
    const released = held.map(index => this.#release(index))
    this.#abandon()
    const { majority, voters } = this.#electorate
    const decide = ({ answers, failures, pending, overdue }: PollState<boolean>): boolean | undefined => {
      const gone = answers.filter(wasHeld => !wasHeld).length
      const enough = overdue || pending === 0 ? majority : this.#needed
      if (answers.length - gone >= enough) return true
      if (held.length - gone < majority) return false
      // Others can have a majority already, and nobody says that it was lost before.
      const isFree = pending + failures.length <= voters.length - majority
      return isFree && gone === 0 && (overdue || pending === 0) ? true : undefined
    }
    return poll(released, this.#electorate, decide, this.#parts.unclear)
  }

  /** Takes it out of all servers, whatever became of it there. */
  async cancel(): Promise<void> {
    const cancelled = this.#end()
    if (cancelled.length === 0) return
    const enough = Math.min(this.#electorate.majority, cancelled.length)
    const decide = ({ answers }: PollState<unknown>): true | undefined =>
      answers.length >= enough ? true : undefined
    await poll(cancelled, this.#electorate, decide, this.#parts.unclear)
  }

  /** True when a majority has made it shared. */
  async downgrade(number: number): Promise<boolean> {
    if (this.number !== number || this.#isEnded) return false
    const held = this.#held()
    const request = this.#request
    const downgraded = held.map(index =>
      this.#electorate.voters[index]!.submit({
        type: 'downgrade',
        request,
        number: this.#votes[index]!.number,
      }),
    )
    for (const [index, vote] of this.#votes.entries()) {
      if (!held.includes(index)) this.#withdraw(index, vote)?.catch(() => undefined)
    }
    // Operations that follow are about shared claims.
    this.#request = { ...request, claims: request.claims.map(({ key }) => ({ key, mode: 'shared' })) }
    return this.#stillHeld(downgraded, held.length)
  }

  /** Asks the servers that have nothing of a grant yet for their votes, too. */
  complete(): void {
    if (!this.#isEnded && this.number !== undefined) this.#complete()
  }

  /** A server has reserved it. */
  woken(index: number): void {
    const vote = this.#votes[index]!
    // A hint that comes after the answer to the question that it would have caused, or about what was taken out.
    if ((vote.state === 'held' && !vote.isPending) || !vote.isEntered) return
    vote.isWoken = true
    if (this.#isEnded || vote.isPending) return
    const round = this.#round
    if (round) this.#ask(index, round)
    else if (this.number !== undefined) this.#ask(index, undefined)
    else this.#hope()
  }

  /** A server has dropped it, or taken it away. */
  dropped(index: number): void {
    const vote = this.#votes[index]!
    vote.state = 'none'
    vote.isEntered = false
    if (this.#isEnded || this.#round) return
    if (this.number === undefined) this.#stir()
    else if (this.#held().length < this.#electorate.majority) this.#parts.lost(this.id)
  }

  /** Somebody with an earlier place waits behind its vote on a server. */
  wanted(index: number): void {
    const vote = this.#votes[index]!
    vote.isWanted = true
    // Within a round it may get its majority, and then the other has to wait.
    if (!this.#isEnded && !this.#round && !vote.isPending) this.#yieldIfWanted(index)
  }

  #preference(): readonly number[] {
    return this.#electorate.preference(this.#request.claims[0]!.key)
  }

  /** The servers that are asked first while all answer in time. */
  #usual(): readonly number[] {
    return this.#electorate.usual(this.#request.claims[0]!.key).slice(0, this.#needed)
  }

  /** The servers that have voted for it, as far as nothing has been asked since. */
  #held(): number[] {
    return [...this.#votes.keys()].filter(index => {
      const { isPending, state } = this.#votes[index]!
      return state === 'held' && !isPending
    })
  }

  #begin(least: number, asked: readonly number[]): Promise<RequestStatus> {
    return new Promise((resolve, reject) => {
      const round = new Round(this.#votes.length, least, resolve, reject)
      this.#round = round
      for (const index of asked) this.#ask(index, round)
      this.#electorate.hurry(() => this.#hurry(round))
    })
  }

  /** Asks one server for its vote: within a round, or beside it. */
  #ask(index: number, round: Round | undefined): void {
    const vote = this.#votes[index]!
    const voter = this.#electorate.voters[index]!
    vote.isPending = true
    vote.isWoken = false
    vote.isWanted = false
    vote.isHeard = voter.isHeard
    if (round) round.answers[index] = 'pending'
    const asked = ++vote.asked
    const isNew = !vote.isEntered
    vote.isEntered = true
    const lease = leaseThere(this.#lease)
    // A grant is not lost when one more server does not vote for it, and nothing waits there in vain.
    const wait = this.number === undefined ? this.#wait : 0
    const least = round?.least ?? this.number ?? this.#electorate.numbers.next()
    const ballot: Ballot = { order: this.order, least }
    const answer = isNew
      ? voter.submit({ type: 'enqueue', request: this.#request, lease, wait }, ballot)
      : voter.submit({ type: 'poll', request: this.#request, lease, wait }, ballot)
    answer.then(
      standing => {
        voter.isOverdue = false
        if (vote.asked === asked) this.#answered(index, standing, isNew, round)
      },
      (error: unknown) => {
        voter.isOverdue = true
        if (vote.asked !== asked) return
        if (isNew && error instanceof UnavailableError) vote.isEntered = false
        this.#failed(index, error as Error, round)
      },
    )
  }

  #answered(index: number, standing: RequestStatus, isNew: boolean, round: Round | undefined): void {
    const vote = this.#votes[index]!
    vote.isPending = false
    switch (standing.state) {
      case 'held':
        vote.state = 'held'
        this.#counted(index, standing.number)
        break
      case 'queued':
        vote.state = 'queued'
        vote.place = standing.place
        vote.lookAgain = standing.lookAgain
        break
      default:
        vote.state = 'none'
        vote.isEntered = false
        if (round && standing.state === 'mismatch') round.mismatch = standing
        // The server has lost it, or dropped it while nothing was heard of it; it has its old place everywhere else.
        if (standing.state === 'gone' && !isNew && !this.#isEnded)
          return this.#ask(index, this.#current(round))
    }
    if (this.#isEnded) return
    const current = this.#current(round)
    if (vote.state === 'queued' && vote.isWoken && (current || this.number !== undefined)) {
      return this.#ask(index, current)
    }
    if (current) {
      current.answers[index] = vote.state === 'held' ? 'held' : 'refused'
      this.#weigh(current)
    } else if (this.number === undefined) {
      this.#dropSurplus()
      this.#yieldIfWanted(index)
      this.#hope()
    }
  }

  /**
   * Leaves the queues that it stands in only because another server was slow. Those who came before may not stand there, and
   * a release would wake it in their stead.
   */
  #dropSurplus(): void {
    const usual = this.#usual()
    if (!usual.every(index => this.#votes[index]!.isQueued)) return
    // Where one has voted for it, every further one may be what is lacking.
    if (this.#held().length > 0) return
    for (const [index, vote] of this.#votes.entries()) {
      if (vote.isQueued && !usual.includes(index)) this.#withdraw(index, vote)?.catch(() => undefined)
    }
  }

  #failed(index: number, error: Error, round: Round | undefined): void {
    const vote = this.#votes[index]!
    vote.isPending = false
    if (vote.state === 'held') vote.state = 'none'
    const current = this.#current(round)
    if (!current) return
    current.answers[index] = 'failed'
    current.failures.push(error)
    this.#weigh(current)
  }

  /** The round, if it is still open. */
  #current(round: Round | undefined): Round | undefined {
    return round === this.#round ? round : undefined
  }

  /** A server has voted with this number. */
  #counted(index: number, number: number): void {
    const { numbers, voters } = this.#electorate
    const voter = voters[index]!
    this.#votes[index]!.number = number
    voter.greatest = Math.max(voter.greatest, number)
    numbers.observe(number)
  }

  #weigh(round: Round): void {
    const tally = round.tally(index => this.#electorate.voters[index]!.isOverdue)
    switch (verdictOf(tally, this.#needed)) {
      case 'wait':
        return this.#closeSoon(round, tally)
      case 'ask more':
        for (const index of this.#preference()) {
          if (round.answers[index] === undefined) this.#ask(index, round)
        }
        return
      case 'granted':
        return this.#elect(round)
      case 'refused':
        return this.#refuse(round)
      case 'unreachable':
        return this.#despair(round)
    }
  }

  /**
   * Gives the grant when as many as are needed have voted with its very number: each of them has given lesser ones only before, and
   * will give greater ones only. Where some were further on, the others are raised to the greatest first.
   */
  #elect(round: Round): void {
    const held = [...this.#votes.keys()].filter(index => round.answers[index] === 'held')
    const inStep = held.filter(index => this.#votes[index]!.number === round.least)
    if (inStep.length >= this.#needed) {
      this.#round = undefined
      this.number = round.least
      if (this.#votes.some(({ isEntered }) => !isEntered)) this.#parts.elected(this)
      return round.resolve({ state: 'held', id: this.id, number: round.least })
    }
    const greatest = Math.max(...held.map(index => this.#votes[index]!.number))
    round.least = greatest
    const lesser = held.filter(index => this.#votes[index]!.number < greatest)
    for (const index of lesser) this.#raise(index, greatest, round)
    if (held.length - lesser.length >= this.#needed) this.#elect(round)
  }

  /** Raises the number of a vote that was given in this round. */
  #raise(index: number, least: number, round: Round): void {
    const vote = this.#votes[index]!
    vote.isPending = true
    round.answers[index] = 'pending'
    const asked = ++vote.asked
    const renewal = {
      type: 'renew',
      request: this.#request,
      number: vote.number,
      lease: leaseThere(this.#lease),
    } as const
    const answer = this.#electorate.voters[index]!.submit(renewal, { order: this.order, least })
    answer.then(
      isHeld => {
        if (vote.asked !== asked) return
        const standing: RequestStatus = isHeld
          ? { state: 'held', id: this.id, number: least }
          : { state: 'busy' }
        this.#answered(index, standing, false, round)
      },
      (error: unknown) => {
        if (vote.asked === asked) this.#failed(index, error as Error, round)
      },
    )
  }

  /** Others have it. */
  #refuse(round: Round): void {
    this.#round = undefined
    if (this.#wait === 0 || round.mismatch) {
      this.#abandon()
      return round.resolve(round.mismatch ?? { state: 'busy' })
    }
    this.#isQueued = true
    this.#electorate.listen()
    // Those who came before stand where one stands while all answer in time; one that was late may be back.
    for (const index of this.#usual()) {
      const { isEntered, isPending } = this.#votes[index]!
      if (!isEntered && !isPending) this.#ask(index, undefined)
    }
    this.#dropSurplus()
    for (const index of this.#held()) this.#yieldIfWanted(index)
    const { id } = this
    round.resolve({ state: 'queued', id, place: this.#place(), lookAgain: this.#lookAgain(), behind: [] })
  }

  /** Too few answer to tell. */
  #despair(round: Round): void {
    this.#round = undefined
    // Who was told that it waits tries again by itself.
    if (!this.#isQueued) this.#abandon()
    round.reject(this.#parts.unreachable(round.failures))
  }

  #hurry(round: Round): void {
    if (this.#round !== round) return
    round.isOverdue = true
    for (const [index, answer] of round.answers.entries()) {
      if (answer === 'pending') this.#electorate.voters[index]!.isOverdue = true
    }
    this.#weigh(round)
    if (this.#current(round)) this.#electorate.giveUp(() => this.#leaveOut(round, () => true))
  }

  /**
   * Leaves those out that are late, where a majority has answered and somebody else has some of the votes. Each of two that
   * have met waits for the one vote that the other has not, and as long as they wait neither yields.
   */
  #closeSoon(round: Round, { held, refused, overdue }: Tally): void {
    if (round.isClosing || !overdue || refused === 0 || held + refused < this.#electorate.majority) return
    round.isClosing = true
    this.#electorate.hurry(() => {
      round.isClosing = false
      this.#leaveOut(round, index => this.#electorate.voters[index]!.isOverdue)
    })
  }

  /** Counts servers that have not answered as out of reach. */
  #leaveOut(round: Round, isMeant: (index: number) => boolean): void {
    if (this.#round !== round) return
    for (const [index, answer] of round.answers.entries()) {
      if (answer !== 'pending' || !isMeant(index)) continue
      const { name } = this.#electorate.voters[index]!
      round.answers[index] = 'failed'
      round.failures.push(new Error(`${name} did not answer in time`))
    }
    this.#weigh(round)
  }

  /**
   * Has a vote of a minority looked at by the server that gave it: whoever waits there with an earlier place gets it.
   * That is needed when the server says so, or may have said so while its hints were not heard.
   */
  #yieldIfWanted(index: number): void {
    const vote = this.#votes[index]!
    const voter = this.#electorate.voters[index]!
    if (vote.state !== 'held' || this.number !== undefined) return
    if (vote.isWanted) return this.#ask(index, undefined)
    if (vote.isHeard) return
    const { asked } = vote
    const again = (): void => {
      if (!this.#isEnded && vote.asked === asked && this.number === undefined) this.#ask(index, undefined)
    }
    // Without hints its next look finds out.
    voter.listen().then(again, () => undefined)
  }

  /** Calls for a look when what is held and reserved may be a majority by now, and else a little later. */
  #hope(): void {
    const votes = this.#votes.filter(({ state, isWoken }) => state === 'held' || isWoken)
    if (votes.length >= this.#needed) this.#parts.wake(this.id)
    else if (votes.some(({ isWoken }) => isWoken)) this.#stir()
  }

  #stir(): void {
    if (this.#isStirring) return
    this.#isStirring = true
    this.#electorate.hurry(() => {
      this.#isStirring = false
      if (!this.#isEnded && !this.#round && this.number === undefined) this.#parts.wake(this.id)
    })
  }

  #place(): number {
    const places = this.#votes.filter(({ state }) => state === 'queued').map(({ place }) => place)
    return places.length === 0 ? 0 : Math.min(...places)
  }

  #lookAgain(): number {
    const queued = this.#votes.filter(({ state }) => state === 'queued').map(({ lookAgain }) => lookAgain)
    const missed = this.#votes.filter(({ isEntered }) => !isEntered).length
    const isLacking = missed > 0 && this.#held().length + missed >= this.#needed
    const soonest = Math.min(...queued, isLacking ? LACKING_LOOKS : Infinity)
    return Math.max(...queued.filter(lookAgain => lookAgain <= soonest + TOGETHER), soonest)
  }

  /** Sets the lease of a grant anew, which another caller here gets on its own terms. */
  async #lookAtGrant(number: number, lease: number): Promise<RequestStatus> {
    return (await this.renew(number, lease)) ? { state: 'held', id: this.id, number } : { state: 'gone' }
  }

  #renewed(index: number, done: boolean, ballot: Ballot | undefined): void {
    const vote = this.#votes[index]!
    if (done) {
      if (ballot) this.#counted(index, ballot.least)
      return
    }
    vote.state = 'none'
    vote.isEntered = false
  }

  /** What it comes to when those that hold it were asked whether they still do. */
  #stillHeld(asked: readonly Promise<boolean>[], held: number): Promise<boolean> {
    const { majority } = this.#electorate
    const decide = ({ answers }: PollState<boolean>): boolean | undefined => {
      const gone = answers.filter(isHeld => !isHeld).length
      if (answers.length - gone >= majority) return true
      return held - gone < majority ? false : undefined
    }
    return poll(asked, this.#electorate, decide, this.#parts.unclear)
  }

  #complete(): void {
    for (const [index, { isPending, state }] of this.#votes.entries()) {
      if (state !== 'held' && !isPending) this.#ask(index, undefined)
    }
  }

  /** True when the server had it held until now. */
  async #release(index: number): Promise<boolean> {
    const vote = this.#votes[index]!
    const voter = this.#electorate.voters[index]!
    vote.isEntered = false
    try {
      return await voter.submit({ type: 'release', request: this.#request, number: vote.number })
    } catch (error) {
      voter.withdraw(this.#request, leaseThere(this.#lease)).catch(() => undefined)
      throw error
    }
  }

  /** Takes back what was asked for in vain, in the background; what can't be reached now ends with its lease. */
  #abandon(): void {
    for (const cancelled of this.#end()) cancelled.catch(() => undefined)
  }

  #withdraw(index: number, vote: Vote): Promise<unknown> | undefined {
    if (!vote.isEntered) return undefined
    vote.isEntered = false
    vote.state = 'none'
    // An answer that is still on its way comes before this is carried out.
    vote.asked++
    vote.isPending = false
    return this.#electorate.voters[index]!.withdraw(this.#request, leaseThere(this.#lease))
  }

  #end(): Promise<unknown>[] {
    if (this.#isEnded) return []
    this.#isEnded = true
    const round = this.#round
    this.#round = undefined
    round?.resolve({ state: 'gone' })
    this.#parts.ended(this)
    const cancelled: Promise<unknown>[] = []
    for (const [index, vote] of this.#votes.entries()) {
      const each = this.#withdraw(index, vote)
      if (each) cancelled.push(each)
    }
    return cancelled
  }
}
