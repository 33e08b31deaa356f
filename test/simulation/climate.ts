import type { Random } from './random.js'

/**
 * Properties of the machines and the network of a schedule. Times are in milliseconds, and the rest are probabilities.
 */
export interface Climate {
  /**
   * `direct`: boxes of one thread on an engine inside it. `calm`: processes, and a network without faults. `rough`:
   * faults of all kinds.
   */
  readonly kind: 'direct' | 'calm' | 'rough'
  readonly processes: number
  /** Minimum delay of a message, and maximum additional delay. */
  readonly latency: number
  readonly jitter: number
  /** Probability of a much longer delay, and its maximum. */
  readonly spikes: number
  readonly longestSpike: number
  readonly lostRequests: number
  readonly lostReplies: number
  readonly refusals: number
  readonly lostHints: number
  readonly repeatedHints: number
  /** Whether hints and replies share a connection, so that they arrive in order. */
  readonly hintsInOrder: boolean
  /** Time after which a client gives up waiting for a reply. */
  readonly timeout: number
  /** Maximum lateness of a timer. */
  readonly lateness: number
  /** The leases that callers request. */
  readonly leases: readonly number[]
  /** Mean time between two actions, and the longest step of work under a grant. */
  readonly pace: number
  readonly work: number
  readonly detectDeadlocks: boolean
}

/** Longest lease of any climate, in milliseconds. */
export const MAX_LEASE = 30_000

/** Whether the boxes of a schedule follow tasks to find deadlocks. */
export function followsTasks(seed: number): boolean {
  return seed % 10 === 0
}

export function drawClimate(seed: number, random: Random): Climate {
  const kind = random.pick(['direct', 'calm', 'rough', 'rough'] as const)
  const busy = random.chance(0.5)
  const common = {
    kind,
    processes: 3 + random.below(3),
    hintsInOrder: random.chance(0.5),
    lateness: random.chance(0.5) ? 0 : 1,
    pace: busy ? random.between(1, 20) : random.between(20, 200),
    work: random.pick([2, 20, 200]),
    detectDeadlocks: followsTasks(seed),
  }
  const still = { spikes: 0, longestSpike: 0, lostRequests: 0, lostReplies: 0, refusals: 0, lostHints: 0 }
  switch (kind) {
    case 'direct':
      return {
        ...common,
        ...still,
        latency: 0,
        jitter: 0,
        repeatedHints: 0,
        timeout: 1000,
        leases: random.sample([20, 100, 1000, 5000, MAX_LEASE], 2),
      }
    case 'calm':
      return {
        ...common,
        ...still,
        latency: random.between(0.1, 2),
        jitter: random.between(0, 4),
        repeatedHints: random.pick([0, 0.1]),
        timeout: 3000,
        leases: random.sample([400, 1000, 5000, MAX_LEASE], 2),
      }
    case 'rough':
      return {
        ...common,
        latency: random.between(0.1, 10),
        jitter: random.between(0, 30),
        spikes: random.pick([0, 0.01, 0.05]),
        longestSpike: random.pick([200, 2000]),
        lostRequests: random.pick([0, 0.01, 0.1]),
        lostReplies: random.pick([0, 0.01, 0.1]),
        refusals: random.pick([0, 0.01, 0.1]),
        lostHints: random.pick([0, 0.1, 1]),
        repeatedHints: random.pick([0, 0.1]),
        timeout: random.pick([200, 1000, 3000]),
        leases: random.sample([50, 200, 1000, 5000, MAX_LEASE], 2),
      }
  }
}

/** Returns the climate without network faults. */
export function healed(climate: Climate): Climate {
  return {
    ...climate,
    jitter: Math.min(climate.jitter, 2),
    spikes: 0,
    lostRequests: 0,
    lostReplies: 0,
    refusals: 0,
    lostHints: 0,
    repeatedHints: 0,
  }
}

/** Returns the maximum delay of a message, in milliseconds. */
export function longestDelay(climate: Climate): number {
  const { latency, jitter, spikes, longestSpike } = climate
  return latency + jitter + (spikes > 0 ? longestSpike : 0)
}
