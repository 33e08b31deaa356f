import type { Clock } from '../../clock.js'
import type { Awaitable, PermitReservation } from '../../engine/contract.js'
import type { ReservePermits } from '../../engine/limits/reserve-permits.js'
import type { BoxTerms } from './box-limiter-options.js'
import { ClockOffset } from './clock-offset.js'
import type { LatencyEstimator } from './latency-estimator.js'

/** The box of a reservation client, as far as the client needs it. */
export interface ReservationSource {
  readonly clock: Clock
  /** The name of the engine for messages. */
  readonly engine: string
  /** The session ID of the box. */
  readonly session: string
  /** The estimate of the latency, which all clients of the box share. */
  readonly meter: LatencyEstimator
  /** Sends a request. Once the box is closed, rejects with its error. */
  readonly ask: (request: ReservePermits) => Awaitable<PermitReservation>
}

/** The request of one call. */
export type Wanted = Partial<Pick<ReservePermits, 'units' | 'returns' | 'pause' | 'explain'>>

/** The bounds of the engine's decision, by the clock of this process. */
export interface Decided {
  readonly earliest: number
  readonly latest: number
}

/** The weight of the newest reply in the average round trip. */
const NEWEST = 0.25
/** A process reserves for this many average round trips, because the next one may take longer. */
const TRIPS = 2

/** Sends the calls for one limiter, and tracks the latency of the engine and the number of waiting processes. */
export class ReservationCalls {
  /** When the last reply came, or the last call failed: clock time. */
  answeredAt = -Infinity
  readonly #source: ReservationSource
  /** The name of the limiter in the engine. */
  readonly #limiter: string
  readonly #offset = new ClockOffset()
  /** Number of processes that wait for permits, in the last reply. */
  #contenders = 1
  /** The average time from a request to its reply, in milliseconds; undefined before the first reply. */
  #roundTrip: number | undefined

  constructor(source: ReservationSource, limiter: string) {
    this.#source = source
    this.#limiter = limiter
  }

  /** How long each permit must be usable, in milliseconds. */
  hold({ hold, maxHold }: BoxTerms): number {
    return Math.max(hold, this.#source.meter.hold(maxHold))
  }

  /** Whether any client of the box has had a reply. Before that, the necessary hold is not known. */
  get hasMeasured(): boolean {
    return this.#source.meter.hasMeasured
  }

  /**
   * Number of permits that this process reserves ahead: an equal part of one window for each waiting process, rounded
   * at random, so that the parts of all add up to one window. If the window is shorter than the time until the next
   * reply, it reserves its part of all permits of that time. If a process is paused, its reserved permits are wasted:
   * the engine can't grant them to others, because the process may have used them just before. So a pause costs the
   * other processes one part, no matter how many callers the process has and how long the pause is. A smaller part
   * would be unfair: permits that no process has reserved go to the first request, which is that of the nearest process
   * again and again.
   *
   * A process always reserves at least one permit, which keeps its place behind the others. Beyond its part, it also
   * takes permits that can be used within the time of a call, because the other processes do not want them. So a
   * process with many callers gets the permits that those with few callers leave.
   */
  part(terms: BoxTerms): number {
    const hold = this.hold(terms)
    const untilReply = TRIPS * this.roundTrip
    const parts = terms.windows.map(({ kind, limit, per }) => {
      // The permits of a smooth window are spread, so only those within the horizon can be shared.
      const window = kind === 'smooth' ? Math.min(terms.horizon / per, 1) : 1
      return limit * Math.max(window, untilReply / (per + hold))
    })
    return Math.floor(Math.min(...parts) / this.#contenders + Math.random())
  }

  /** How long it takes until each waiting process has had one permit, in milliseconds. */
  rotation({ windows }: BoxTerms): number {
    return this.#contenders * Math.max(...windows.map(({ limit, per }) => per / limit))
  }

  /** The average time from a request to its reply, in milliseconds; 0 before the first reply. */
  get roundTrip(): number {
    return this.#roundTrip ?? 0
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

  /** Records the state in a reply. @param askedAt clock time of the request. */
  learn({ reserved: { now, contenders }, ...asked }: PermitReservation, askedAt: number): Decided {
    this.answeredAt = this.#source.clock.now()
    if (contenders > 0) this.#contenders = contenders
    const taken = this.answeredAt - askedAt
    this.#roundTrip = taken * NEWEST + (this.#roundTrip ?? taken) * (1 - NEWEST)
    const [earliest, latest] = this.#offset.learn(now, asked.earliest, asked.latest)
    this.#source.meter.note(this.answeredAt - earliest, this.answeredAt)
    return { earliest, latest }
  }

  failed(): void {
    this.answeredAt = this.#source.clock.now()
  }
}
