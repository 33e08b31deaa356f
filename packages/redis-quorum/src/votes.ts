import type { Enqueue } from 'signalbox/engine'
import type { Electorate } from './electorate.js'
import { votesNeeded } from './tally.js'
import { Vote, type Candidacy } from './vote.js'
import type { Voter } from './voter.js'

/** Delay until servers that could not be asked, and whose votes are needed, are asked again, in milliseconds. */
const ASK_MISSING_AFTER = 500
/** Leases of one holder that end on the servers within this time, in milliseconds, need only one look. */
const TOGETHER = 50

/** Returns the latest of the times that need only one look together with the first of them, or with `other`. */
export function soonestTogether(times: readonly number[], other = Infinity): number {
  const soonest = Math.min(...times, other)
  return Math.max(...times.filter(time => time <= soonest + TOGETHER), soonest)
}

/** The votes of all servers for a request. */
export class Votes {
  readonly candidacy: Candidacy
  /** In the order in which the servers are asked while all of them answer in time. */
  readonly all: readonly Vote[]
  /** Number of votes that a grant needs. */
  readonly needed: number
  /** Whether the request was removed, and no server is asked any more. */
  isWithdrawn = false

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

  /** The votes of the servers that are asked first while all of them answer in time. */
  get usual(): readonly Vote[] {
    return this.all.slice(0, this.needed)
  }

  get held(): readonly Vote[] {
    return this.all.filter(({ isHeld }) => isHeld)
  }

  of(voter: Voter): Vote {
    return this.all.find(vote => vote.voter === voter)!
  }

  /** The number of requests ahead of it, on the server with the fewest. */
  get place(): number {
    const places = this.#queued.map(({ place }) => place)
    return places.length === 0 ? 0 : Math.min(...places)
  }

  /** When its waiter checks in: milliseconds from now. */
  get checkInAfter(): number {
    const looks = this.#queued.map(({ checkInAfter }) => checkInAfter)
    const missing = this.all.filter(({ state }) => state === 'absent').length
    const isMissing = missing > 0 && this.held.length + missing >= this.needed
    return soonestTogether(looks, isMissing ? ASK_MISSING_AFTER : Infinity)
  }

  /** Removes the request from all servers. Failed attempts are repeated, and the request expires with its lease. */
  withdraw(): Promise<void>[] {
    this.isWithdrawn = true
    return this.all.flatMap(vote => vote.withdraw() ?? [])
  }

  get #queued(): readonly Vote[] {
    return this.all.filter(({ state }) => state === 'queued')
  }
}
