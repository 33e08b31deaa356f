import type { RequestStatus } from 'signalbox/engine'
import type { Electorate } from './electorate.js'
import { verdictOf, type Tally } from './tally.js'
import type { Vote } from './vote.js'
import type { Votes } from './votes.js'

export type Mismatch = RequestStatus & { readonly state: 'mismatch' }

/** Receives the result of a round: one call of one of the first four methods. */
export interface RoundListener {
  /** Enough servers have voted with this number. */
  granted(number: number): void
  /** Other requests have too many of the votes, or the key is in use with another number of permits. */
  refused(mismatch: Mismatch | undefined): void
  /** Too few servers answer to know the result. */
  unreachable(failures: readonly Error[]): void
  abandoned(): void
  /** A server has answered after the round was over. */
  answeredLate(vote: Vote): void
}

/** One round of voting. Only answers to questions of this round count. */
export class Round {
  readonly #votes: Votes
  readonly #electorate: Electorate
  readonly #listener: RoundListener
  /** The proposed number of the grant. */
  #number: number
  /** The answers of the servers that were asked. */
  readonly #answers = new Map<Vote, 'pending' | 'held' | 'refused' | 'failed'>()
  readonly #failures: Error[] = []
  #mismatch: Mismatch | undefined
  #isLate = false
  /** Whether late servers are about to be left out. */
  #isClosing = false
  #isOver = false

  constructor(votes: Votes, electorate: Electorate, number: number, listener: RoundListener) {
    this.#votes = votes
    this.#electorate = electorate
    this.#number = number
    this.#listener = listener
  }

  begin(asked: readonly Vote[]): void {
    for (const vote of asked) this.ask(vote)
    this.#electorate.whenLate(() => this.#late())
  }

  /** Asks a server for its vote, or asks it again. */
  ask(vote: Vote): void {
    this.#answers.set(vote, 'pending')
    vote.ask(this.#number, answer => this.#answered(vote, answer))
  }

  abandon(): void {
    this.#isOver = true
    this.#listener.abandoned()
  }

  #answered(vote: Vote, answer: RequestStatus | Error): void {
    if (this.#isOver) {
      if (!(answer instanceof Error)) this.#listener.answeredLate(vote)
      return
    }
    if (answer instanceof Error) this.#failed(vote, answer)
    else if (vote.state === 'queued' && vote.isReserved) return this.ask(vote)
    else this.#answers.set(vote, vote.state === 'held' ? 'held' : 'refused')
    if ('state' in answer && answer.state === 'mismatch') this.#mismatch = answer
    this.#weigh()
  }

  #failed(vote: Vote, failure: Error): void {
    this.#answers.set(vote, 'failed')
    this.#failures.push(failure)
  }

  #weigh(): void {
    const tally = this.#tally()
    switch (verdictOf(tally, this.#votes.needed)) {
      case 'wait':
        return this.#closeSoon(tally)
      case 'ask more':
        for (const vote of this.#votes.preferred) if (!this.#answers.has(vote)) this.ask(vote)
        return
      case 'granted':
        return this.#elect()
      case 'refused':
        this.#isOver = true
        return this.#listener.refused(this.#mismatch)
      case 'unreachable':
        this.#isOver = true
        return this.#listener.unreachable(this.#failures)
    }
  }

  #tally(): Tally {
    const counts = { held: 0, refused: 0, failed: 0, pending: 0 }
    let isLate = true
    for (const [{ voter }, answer] of this.#answers) {
      counts[answer]++
      if (answer === 'pending' && !voter.isLate) isLate = false
    }
    const unasked = this.#votes.all.length - this.#answers.size
    return { ...counts, unasked, isLate: isLate || this.#isLate }
  }

  /**
   * Grants the request when enough servers have voted with exactly its number: each of them has given only smaller
   * numbers before, and will give only greater ones. If some servers have given greater numbers, first raises the
   * others to the greatest.
   */
  #elect(): void {
    const held = this.#votes.all.filter(vote => this.#answers.get(vote) === 'held')
    const isEnough = (): boolean =>
      held.filter(vote => vote.number === this.#number).length >= this.#votes.needed
    if (!isEnough()) {
      this.#number = Math.max(...held.map(({ number }) => number))
      for (const vote of held) if (vote.number < this.#number) this.#raise(vote)
    }
    if (!isEnough()) return
    this.#isOver = true
    this.#listener.granted(this.#number)
  }

  #raise(vote: Vote): void {
    this.#answers.set(vote, 'pending')
    vote.raise(this.#number, answer => this.#answered(vote, answer))
  }

  /** The servers that have not answered are late from now on. */
  #late(): void {
    if (this.#isOver) return
    this.#isLate = true
    for (const [{ voter }, answer] of this.#answers) if (answer === 'pending') voter.isLate = true
    this.#weigh()
    if (!this.#isOver) this.#electorate.whenOutOfReach(() => this.#leaveOut(() => true))
  }

  /**
   * Leaves late servers out soon when a majority has answered and other requests have some of the votes. Otherwise two
   * competing requests would wait for the one vote that neither has, and neither yields as long as it waits.
   */
  #closeSoon({ held, refused, isLate }: Tally): void {
    const isContested = refused > 0 && held + refused >= this.#electorate.majority
    if (this.#isClosing || !isLate || !isContested) return
    this.#isClosing = true
    this.#electorate.whenLate(() => {
      this.#isClosing = false
      this.#leaveOut(({ voter }) => voter.isLate)
    })
  }

  /** Counts servers that have not answered as unreachable. */
  #leaveOut(isMeant: (vote: Vote) => boolean): void {
    if (this.#isOver) return
    for (const [vote, answer] of this.#answers) {
      if (answer !== 'pending' || !isMeant(vote)) continue
      this.#failed(vote, new Error(`timed out waiting for ${vote.voter.name}`))
    }
    this.#weigh()
  }
}
