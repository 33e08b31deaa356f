import type { VirtualClock } from '../../../src/base/clock.js'
import { reservePermits, type LimiterState } from '../../../src/engine/limits/reserve-permits.js'
import type { ReservePermits, Reserved } from '../../../src/engine/limits/reservation.js'

/** An engine whose clock is unrelated to the clock of its callers. */
export class Server {
  #state: LimiterState | undefined
  readonly #clock: VirtualClock

  constructor(clock: VirtualClock) {
    this.#clock = clock
  }

  decide(request: ReservePermits): Reserved {
    const now = this.#clock.now() + 1.7e12
    const decision = reservePermits(this.#state, request, now, now)
    this.#state = decision.state
    return decision.reserved
  }
}

/** Must not be called: none of these limiters has a concurrency. */
export const lock = (): never => {
  throw new Error('no lock is needed')
}
