import type { History, LockRequest } from '../history.js'
import type { Finding } from './finding.js'
import { groupedBy } from 'signalbox/engine'
import { explains, type Trouble } from './troubles.js'

/**
 * Checks that each request was granted after those that were in the queue before it was made (P4). Ignores requests in
 * the queue whose client was in trouble, because they may have missed their turn.
 */
export function checkOrder(
  { requests }: History,
  troubles: readonly Trouble[],
): { findings: Finding[]; orders: number } {
  const findings: Finding[] = []
  let orders = 0
  for (const ofKey of groupedBy(requests, ({ key }) => key).values()) {
    const inQueue = ofKey
      .filter(({ queued }) => queued !== undefined)
      .filter(request => !troubles.some(trouble => explains(trouble, request)))
    for (const [earlier, later] of inOrderOfArrival(inQueue, ofKey)) {
      orders++
      if (servedAt(earlier) > later.granted!)
        findings.push({ promise: 'P4', message: overtaking(earlier, later) })
    }
  }
  return { findings, orders }
}

/** Pairs each request of `inQueue` with each request that was made while it was in the queue and that was granted. */
function* inOrderOfArrival(
  inQueue: readonly LockRequest[],
  requests: readonly LockRequest[],
): Generator<readonly [LockRequest, LockRequest]> {
  const arriving = [...inQueue].sort((one, other) => one.queued! - other.queued!)
  const asking = requests
    .filter(({ granted }) => granted !== undefined)
    .sort((one, other) => one.asked - other.asked)
  let waiting: LockRequest[] = []
  for (const later of asking) {
    while (arriving[0] && arriving[0].queued! <= later.asked) waiting.push(arriving.shift()!)
    waiting = waiting.filter(earlier => servedAt(earlier) > later.asked)
    for (const earlier of waiting) yield [earlier, later]
  }
}

/** Returns the time at which the request was granted or ended without a grant; Infinity if neither is known. */
function servedAt({ granted, left }: LockRequest): number {
  return granted ?? left ?? Infinity
}

function overtaking(earlier: LockRequest, later: LockRequest): string {
  return `${later.who}, asking at ${later.asked}, came to ${later.key} before ${earlier.who}, in the queue at ${earlier.queued!}`
}
