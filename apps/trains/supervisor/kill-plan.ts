/** The moment of a kill: while the worker works, or when it has committed messages and not yet acknowledged them. */
type KillMoment = 'at work' | 'committed, not acknowledged'

export interface PlannedKill {
  /** Number of messages that must be done before the kill. */
  readonly after: number
  readonly moment: KillMoment
}

/** Number of messages between two kills if the length of the stream is unknown. */
const DEFAULT_DISTANCE = 1000

/** Fraction of the stream in which kills are due. At its end, a worker may have no messages in flight to lose. */
const KILL_RANGE = 0.9

/** Returns kills that are distributed evenly over a stream, with alternating moments. */
export function planKills(kills: number, messages: number | undefined): readonly PlannedKill[] {
  const total = messages ?? kills * DEFAULT_DISTANCE
  return Array.from({ length: kills }, (_, index) => ({
    after: Math.floor(((index + 0.5) / kills) * KILL_RANGE * total),
    moment: index % 2 === 0 ? 'at work' : 'committed, not acknowledged',
  }))
}

/** A kill that was executed. */
export interface Kill {
  /** The worker's number, counted from 1. */
  readonly worker: number
  readonly pid: number
  readonly moment: PlannedKill['moment']
  /** Number of messages of the run that were done when the worker was killed. */
  readonly afterMessages: number
  readonly inFlight: number
  /** Number of these that the worker had reported as committed and not acknowledged; 0 if it was killed at work. */
  readonly committed: number
  /** Number of messages that were delivered again to its replacement. */
  redelivered: number
  /** Number of those that were already committed, so they changed nothing. */
  alreadyApplied: number
}
