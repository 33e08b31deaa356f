/** When to kill a worker: while it works, or when it has committed messages and not yet acknowledged them. */
type KillMoment = 'at work' | 'committed, not acknowledged'

/** A planned kill. */
export interface PlannedKill {
  /** Number of messages that must be done before. */
  readonly after: number
  readonly moment: KillMoment
}

/** Number of messages between two kills if the length of the stream is unknown. */
const DEFAULT_DISTANCE = 1000

/** Kills are due in this part of the stream: at its end, no messages are in flight that could be lost. */
const KILL_RANGE = 0.9

/** Distributes kills evenly over a stream, alternating the two moments. */
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
  /** Number of messages that were done when it was killed. */
  readonly afterMessages: number
  /** Number of messages that it had in flight. */
  readonly inFlight: number
  /** Number of them that it had reported as committed and not acknowledged; 0 if it was killed at work. */
  readonly committed: number
  /** Number of messages that were delivered again to its replacement. */
  redelivered: number
  /** Number of those that were already committed, so they changed nothing. */
  alreadyApplied: number
}
