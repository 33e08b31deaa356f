/** How the servers of a quorum have answered so far. Together they are all servers. */
export interface Tally {
  /** Gave their vote. */
  readonly held: number
  /** Answered that somebody else has it. */
  readonly refused: number
  /** Can't be reached. */
  readonly failed: number
  /** Were asked and have not answered. */
  readonly pending: number
  readonly unasked: number
  /** Whether those that have not answered take longer than they should. */
  readonly overdue: boolean
}

/**
 * What it comes to: `granted` by a majority; `refused`, because a majority answered and no majority of votes is to be
 * had; `unreachable`, because too few answered to know; `ask more` servers; or `wait` for those that were asked.
 */
export type Verdict = 'granted' | 'refused' | 'unreachable' | 'ask more' | 'wait'

/** So many of `servers` are a majority: two majorities always have one in common. */
export function majorityOf(servers: number): number {
  return Math.floor(servers / 2) + 1
}

/**
 * How many of `servers` have to vote for a grant. Two grants that exclude each other need one server in common: a majority.
 * Permits are counted by each server alone, so all servers together give `servers * permits` of them, and a grant has to
 * take so many of those that `permits + 1` grants of one permit would take more than there are.
 * @param permits of the semaphore; 1 for a mutex.
 */
export function votesNeeded(servers: number, permits: number): number {
  return Math.floor((servers * permits) / (permits + 1)) + 1
}

/**
 * Decides as soon as the answers that are missing can't change it.
 * @param needed so many votes make a grant.
 */
export function verdictOf(
  { held, refused, failed, pending, unasked, overdue }: Tally,
  needed: number,
): Verdict {
  if (held >= needed) return 'granted'
  const majority = majorityOf(held + refused + failed + pending + unasked)
  const open = pending + unasked
  const hopeless = held + open < needed
  if (hopeless && refused > 0 && held + refused >= majority) return 'refused'
  if (hopeless && (open === 0 || held + refused + open < majority)) return 'unreachable'
  // Those that were asked may yet make it plain that more need not be asked.
  return unasked > 0 && (pending === 0 || overdue) ? 'ask more' : 'wait'
}
