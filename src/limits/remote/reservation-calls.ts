import type { Clock } from '../../clock.js'
import type { Awaitable, PermitReservation } from '../../engine/contract.js'
import type { ReservePermits } from '../../engine/limits/reserve-permits.js'
import type { BoxTerms } from './box-limiter-options.js'
import { ClockOffset } from './clock-offset.js'
import type { LatencyEstimator } from './latency-estimator.js'

/** What a reservation client needs of its box. */
export interface ReservationSource {
  readonly clock: Clock
  /** For messages. */
  readonly engine: string
  /** The box's session id. */
  readonly session: string
  /** What all clients of the box have measured of the way to the engine. */
  readonly meter: LatencyEstimator
  /** Fails with the error that ended the box once the box is closed. */
  readonly ask: (request: ReservePermits) => Awaitable<PermitReservation>
}

/** What one call asks for. */
export type Wanted = Partial<Pick<ReservePermits, 'units' | 'returns' | 'pause' | 'explain'>>

/** The clock times of this process between which the engine decided. */
export interface Decided {
  readonly earliest: number
  readonly latest: number
}

/** The calls for one limiter, and what their answers show about the latency of the engine and about other processes. */
export class ReservationCalls {
  /** When the last answer came, or the last call failed: clock time. */
  answeredAt = -Infinity
  readonly #source: ReservationSource
  /** The limiter's name in the engine. */
  readonly #limiter: string
  readonly #offset = new ClockOffset()
  /** How many processes wait for permits, as the engine last reported. */
  #contenders = 1

  constructor(source: ReservationSource, limiter: string) {
    this.#source = source
    this.#limiter = limiter
  }

  /** For how long each permit must be usable, in milliseconds. */
  hold({ hold, maxHold }: BoxTerms): number {
    return Math.max(hold, this.#source.meter.hold(maxHold))
  }

  /** Whether any client of the box has had an answer: before that nothing is known of the hold. */
  get hasMeasured(): boolean {
    return this.#source.meter.hasMeasured
  }

  /**
   * How many permits this process reserves ahead: an equal part of one window for each waiting process, rounded at
   * random, so that the parts of all make up one window. Permits that a process has reserved when it is stopped pass
   * unused: the engine can't give them to others, because the process may have used them just before. So the part is
   * what a stop costs the other processes, however many callers the process has and however long it is stopped. A
   * smaller part would not do: what no process has reserved goes to the process that asks first, which is the nearest
   * one again and again.
   *
   * A process reserves one permit in any case, which keeps its place behind the others. It also takes, beyond its part,
   * permits that can be used within the time of a call and its answer, because the other processes do not want them. So
   * a process with many callers has what those with few leave.
   */
  part({ maxPermits }: BoxTerms): number {
    return Math.floor(maxPermits / this.#contenders + Math.random())
  }

  /** @param horizon how far ahead to reserve, in milliseconds. */
  ask(terms: BoxTerms, horizon: number, wanted: Wanted): Awaitable<PermitReservation> {
    const { units = [], returns = [], pause, explain } = wanted
    const { session } = this.#source
    const { windows } = terms
    const hold = this.hold(terms)
    const limiter = this.#limiter
    return this.#source.ask({ limiter, session, windows, units, horizon, hold, returns, pause, explain })
  }

  /** Records what an answer reports. */
  learn({ reserved: { now, contenders }, ...asked }: PermitReservation): Decided {
    this.answeredAt = this.#source.clock.now()
    if (contenders > 0) this.#contenders = contenders
    const [earliest, latest] = this.#offset.learn(now, asked.earliest, asked.latest)
    this.#source.meter.note(this.answeredAt - earliest, this.answeredAt)
    return { earliest, latest }
  }

  failed(): void {
    this.answeredAt = this.#source.clock.now()
  }
}
