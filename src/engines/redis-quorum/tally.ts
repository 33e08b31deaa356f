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

/** Decides as soon as the answers that are missing can't change it. */
export function verdictOf({ held, refused, failed, pending, unasked, overdue }: Tally): Verdict {
  const majority = majorityOf(held + refused + failed + pending + unasked)
  if (held >= majority) return 'granted'
  const open = pending + unasked
  const hopeless = held + open < majority
  if (hopeless && held + refused >= majority) return 'refused'
  if (held + refused + open < majority) return 'unreachable'
  // Those that were asked may yet make it plain that more need not be asked.
  return unasked > 0 && (pending === 0 || overdue) ? 'ask more' : 'wait'
}
