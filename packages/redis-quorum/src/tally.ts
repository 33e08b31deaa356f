/** The answers of the servers of a quorum so far. The numbers add up to all servers. */
export interface Tally {
  /** Gave their vote. */
  readonly held: number
  /** Answered that another request has their vote. */
  readonly refused: number
  /** Can't be reached. */
  readonly failed: number
  /** Were asked and have not answered. */
  readonly pending: number
  readonly unasked: number
  /** Whether all pending ones are late. */
  readonly isLate: boolean
}

/**
 * The result of the answers: `granted` by enough votes; `refused`, because a majority answered and there can't be
 * enough votes; `unreachable`, because too few answered to know; `ask more` servers; or `wait` for those that were
 * asked.
 */
export type Verdict = 'granted' | 'refused' | 'unreachable' | 'ask more' | 'wait'

/** Returns how many of `servers` are a majority: two majorities always have a server in common. */
export function majorityOf(servers: number): number {
  // mutant: half-is-majority
  return Math.floor(servers / 2) + 1
}

/**
 * Returns how many of `servers` have to vote for a grant. Two grants that exclude each other need one server in common:
 * a majority. Each server counts permits alone, so all servers together give `servers * permits` of them. A grant has
 * to take as many of these as needed so that `permits + 1` grants of one permit would take more than there are.
 * @param permits of the semaphore; 1 for a mutex.
 */
export function votesNeeded(servers: number, permits: number): number {
  return Math.floor((servers * permits) / (permits + 1)) + 1
}

/**
 * Decides as soon as the missing answers can't change the verdict.
 * @param needed number of votes that make a grant.
 */
export function verdictOf(
  { held, refused, failed, pending, unasked, isLate }: Tally,
  needed: number,
): Verdict {
  if (held >= needed) return 'granted'
  const majority = majorityOf(held + refused + failed + pending + unasked)
  const open = pending + unasked
  const isHopeless = held + open < needed
  if (isHopeless && refused > 0 && held + refused >= majority) return 'refused'
  if (isHopeless && (open === 0 || held + refused + open < majority)) return 'unreachable'
  // The answers of those that were asked may make it unnecessary to ask more.
  return unasked > 0 && (pending === 0 || isLate) ? 'ask more' : 'wait'
}
