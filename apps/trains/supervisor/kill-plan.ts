/** When a worker is killed: while it works, or when it has committed something and not yet acknowledged it. */
type KillMoment = 'at work' | 'committed, not acknowledged'

/** One kill of the plan. */
export interface PlannedKill {
  /** Number of messages that must be done first. */
  readonly after: number
  readonly moment: KillMoment
}

/** How many messages lie between two kills of a stream of unknown length. */
const USUAL_DISTANCE = 1000

/** Up to which part of the stream kills are due: at its very end nothing is in flight any more that could be lost. */
const LAST_PART = 0.9

/** Spreads kills evenly over a stream, the two moments in turn. */
export function planKills(kills: number, messages: number | undefined): readonly PlannedKill[] {
  const total = messages ?? kills * USUAL_DISTANCE
  return Array.from({ length: kills }, (_, index) => ({
    after: Math.floor(((index + 0.5) / kills) * LAST_PART * total),
    moment: index % 2 === 0 ? 'at work' : 'committed, not acknowledged',
  }))
}

/** A kill that was executed. */
export interface Kill {
  /** The worker's number, counted from 1. */
  readonly worker: number
  readonly pid: number
  readonly moment: PlannedKill['moment']
  /** How many messages were done when it was killed. */
  readonly afterMessages: number
  /** How many messages it had in flight when it was killed. */
  readonly inFlight: number
  /** How many of them it had committed without acknowledging, as it said itself; 0 where it was not asked. */
  readonly committed: number
  /** How many messages were delivered again to the process that replaced it. */
  redelivered: number
  /** How many of those turned out to be committed already, and changed nothing. */
  alreadyApplied: number
}
