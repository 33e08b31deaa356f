import type { Enqueue } from '../../../engine/contract.js'
import type { Electorate } from './electorate.js'
import { votesNeeded } from './tally.js'
import { Vote, type Candidacy } from './vote.js'
import type { Voter } from './voter.js'

/** When a server could not be asked, and only its vote is missing, it is asked again so soon, in milliseconds. */
const MISSING_LOOK = 500
/** Leases of one holder that end on the servers within this time, in milliseconds, need one look only. */
const TOGETHER = 50

/** The votes of a request: what each server has of it. */
export class Votes {
  readonly candidacy: Candidacy
  /** In the order in which the servers are asked while all of them answer in time. */
  readonly all: readonly Vote[]
  /** So many votes make a grant. */
  readonly needed: number
  #isWithdrawn = false

  constructor(electorate: Electorate, { request, lease, wait }: Enqueue) {
    const { claims } = request
    const candidacy = { request, order: electorate.numbers.next(), lease, wait }
    this.candidacy = candidacy
    this.all = electorate.inOrder(claims[0]!.key).map(voter => new Vote(voter, candidacy))
    const permits = claims.map(claim => (claim.mode === 'permits' ? claim.max : 1))
    this.needed = votesNeeded(this.all.length, Math.max(...permits))
  }

  /** In the order in which the servers are asked now: late ones come last. */
  get preferred(): readonly Vote[] {
    const isLate = ({ voter }: Vote): boolean => voter.isLate
    if (!this.all.some(isLate)) return this.all
    return [...this.all.filter(vote => !isLate(vote)), ...this.all.filter(isLate)]
  }

  /** Those of the servers that are asked first while all of them answer in time. */
  get usual(): readonly Vote[] {
    return this.all.slice(0, this.needed)
  }

  get held(): readonly Vote[] {
    return this.all.filter(({ isHeld }) => isHeld)
  }

  of(voter: Voter): Vote {
    return this.all.find(vote => vote.voter === voter)!
  }

  /** How many requests are before it where the fewest are. */
  get place(): number {
    const places = this.#queued.map(({ place }) => place)
    return places.length === 0 ? 0 : Math.min(...places)
  }

  /** When its waiter looks again: milliseconds from now. */
  get checkInAfter(): number {
    const looks = this.#queued.map(({ checkInAfter }) => checkInAfter)
    const missing = this.all.filter(({ state }) => state === 'absent').length
    const isMissing = missing > 0 && this.held.length + missing >= this.needed
    const soonest = Math.min(...looks, isMissing ? MISSING_LOOK : Infinity)
    return Math.max(...looks.filter(look => look <= soonest + TOGETHER), soonest)
  }

  /** Whether the request is taken out, and no server is asked any more. */
  get isWithdrawn(): boolean {
    return this.#isWithdrawn
  }

  /** Takes the request out of all servers. What can't be reached now is tried again, and ends with its lease. */
  withdraw(): Promise<void>[] {
    this.#isWithdrawn = true
    return this.all.flatMap(vote => vote.withdraw() ?? [])
  }

  get #queued(): readonly Vote[] {
    return this.all.filter(({ state }) => state === 'queued')
  }
}
