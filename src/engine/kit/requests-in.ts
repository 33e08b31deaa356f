import type { LockRequest } from '../contract.js'
import type { Purpose } from './state-engine.js'

/** The requests that an operation names. Their claims show where an engine keeps its data about them. */
export function requestsIn(purpose: Purpose): readonly LockRequest[] {
  switch (purpose.type) {
    case 'alive':
      return purpose.requests
    case 'extendOrYield':
      return [purpose.request, purpose.next]
    case 'commit':
      return purpose.guard ? [purpose.guard.request] : []
    default:
      return 'request' in purpose ? [purpose.request] : []
  }
}
