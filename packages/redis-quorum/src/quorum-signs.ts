import type { Alive, LockRequest, SignOutcome } from 'signalbox/engine'
import type { Candidate } from './candidate.js'
import type { Answers, Electorate } from './electorate.js'
import type { Voter } from './voter.js'
import { soonestTogether } from './votes.js'

/** The answer of a server to a sign. */
interface Signed extends SignOutcome {
  /** The IDs of the requests that it covers. */
  readonly covered: readonly string[]
}

/** Sends signs of life to the servers of a quorum: one to each server, for all requests that wait there. */
export class QuorumSigns {
  readonly #electorate: Electorate
  readonly #candidate: (id: string) => Candidate | undefined

  constructor(electorate: Electorate, candidate: (id: string) => Candidate | undefined) {
    this.#electorate = electorate
    this.#candidate = candidate
  }

  /** Rejects if no server answers. */
  async send({ session, requests }: Alive): Promise<SignOutcome> {
    const byVoter = new Map<Voter, LockRequest[]>()
    // The number of servers that still have to cover each request.
    const missing = new Map<string, number>()
    const due = new Set<string>()
    for (const request of requests) {
      const waiting = this.#candidate(request.id)?.waiting()
      if (!waiting) {
        due.add(request.id)
        continue
      }
      missing.set(request.id, waiting.enough)
      for (const { voter } of waiting.queued) {
        const named = byVoter.get(voter)
        if (named) named.push(request)
        else byVoter.set(voter, [request])
      }
    }
    this.#electorate.listen()
    const signed = await this.#answers([...byVoter].map(([voter, named]) => signTo(voter, session, named)))
    for (const answer of signed) {
      for (const id of answer.due) due.add(id)
      for (const id of answer.covered) missing.set(id, missing.get(id)! - 1)
    }
    // If servers have not answered, a check-in enters the queues of others.
    for (const [id, count] of missing) if (count > 0) due.add(id)
    return { due: [...due], next: soonestTogether(signed.map(({ next }) => next)) }
  }

  /**
   * The answers of all servers that are not late. If these are too few, also those that come before the other servers
   * count as unreachable. Then some requests are due, and their check-ins ask other servers.
   */
  #answers(asked: readonly Promise<Signed>[]): Promise<readonly Signed[]> {
    const enough = Math.min(this.#electorate.majority, asked.length)
    const decide = ({ answers, pending, isLate, isOver }: Answers<Signed>): typeof answers | undefined => {
      const isWaitedFor = pending > 0 && !isOver && !(isLate && answers.length >= enough)
      return isWaitedFor || (answers.length === 0 && asked.length > 0) ? undefined : answers
    }
    return this.#electorate.outcome(asked, decide)
  }
}

async function signTo(voter: Voter, session: string, requests: readonly LockRequest[]): Promise<Signed> {
  const { due, next } = await voter.submit({ type: 'alive', session, requests })
  const isDue = new Set(due)
  return { due, next, covered: requests.map(({ id }) => id).filter(id => !isDue.has(id)) }
}
