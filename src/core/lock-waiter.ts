import type { LockEvent } from '../base/diagnostics.js'
import { Waiter } from '../base/waiters.js'
import type { LocalGrant } from './grant.js'
import type { AcquireTerms } from './lock-options.js'

/** A caller that waits for a grant. */
export class LockWaiter extends Waiter {
  constructor(
    readonly request: AcquireTerms,
    /** When it began to wait: clock time. */
    readonly since: number,
    readonly resolve: (grant: LocalGrant) => void,
    readonly reject: (error: Error) => void,
    /** The event that was published about its request, if there was a subscriber. */
    readonly event: LockEvent | undefined,
  ) {
    super(1)
  }
}
