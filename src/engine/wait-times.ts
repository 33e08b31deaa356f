import type { WaitTerms } from './contract.js'

/** Time for which keys stay reserved for a waiter that was woken, in milliseconds. */
export const CLAIM_WINDOW = 1000

/** Maximum time for which a waiter blocks other requests without a check-in or sign, in milliseconds. */
export const WAITER_TTL = 5000

/** Maximum interval between heartbeats, in milliseconds. A short lease or wait requires more of them. */
export const HEARTBEAT_INTERVAL = WAITER_TTL / 3

/** Interval between check-ins of the first waiter while an earlier grant is bound to a transaction, in milliseconds. */
export const BOUND_CHECK_INTERVAL = 50

/** Interval at which a box reads its watched keys again, because hints may be lost, in milliseconds. */
export const WATCH_READ_INTERVAL = 10_000

/**
 * Returns the time for which a waiter blocks other requests without a check-in or sign, in milliseconds. After that it
 * keeps its place until a later request is granted past it, at the latest until its lease has passed; see
 * {@link placeTtl}.
 */
export function entryTtl(terms: WaitTerms): number {
  return Math.min(placeTtl(terms), WAITER_TTL)
}

/**
 * Returns the time for which a waiter keeps its place while the engine is unreachable, in milliseconds. The limit by
 * its wait is for callers that have given up: a cancellation that is late or lost would leave their request in the way
 * of others. The window on top gives callers that came later the time to check in.
 */
export function placeTtl({ lease, wait }: WaitTerms): number {
  return Math.min(lease, wait + CLAIM_WINDOW)
}

/** Maximum time until the next heartbeat that keeps the entry of a waiter alive, in milliseconds. */
export function heartbeatWithin({ lease, wait }: WaitTerms): number {
  return Math.min(lease * HEARTBEAT_PART, wait + CLAIM_WINDOW * HEARTBEAT_PART, HEARTBEAT_INTERVAL)
}

/** Returns the time for which a sign of life keeps a request with this lease from being silent, in milliseconds. */
export function coverTtl(lease: number): number {
  return Math.min(lease, WAITER_TTL)
}

/** The part of its lease, or of the claim window after its wait, within which a waiter must check in. */
const HEARTBEAT_PART = 2 / 3
