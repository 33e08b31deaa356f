import type { PermitReservation } from '../../engine/contract.js'
import type { BoxTerms } from './box-limiter-options.js'
import { ClockOffset } from './clock-offset.js'
import type { LatencyEstimator } from './latency-estimator.js'

/** The bounds of the engine's decision, by the clock of this process. */
export type Decided = Omit<PermitReservation, 'reserved'>

/** The weight of the newest reply in the average round trip. */
const NEWEST = 0.25
/** Number of average round trips for which a process reserves at least, because the next one may take longer. */
export const TRIPS = 2

/** The latency of the engine, and the number of waiting processes, as the replies for one limiter show them. */
export class EngineView {
  readonly #offset = new ClockOffset()
  /** Number of processes that wait for permits, in the last reply. */
  #contenders = 1
  /** The average time from a request to its reply, in milliseconds; undefined before the first reply. */
  #roundTrip: number | undefined
  readonly #meter: LatencyEstimator

  /** @param meter the estimate of the latency, which all clients of the box share. */
  constructor(meter: LatencyEstimator) {
    this.#meter = meter
  }

  /** Returns the time for which each permit must be usable, in milliseconds. */
  hold({ hold, maxHold }: BoxTerms): number {
    return Math.max(hold, this.#meter.hold(maxHold))
  }

  /** Whether any client of the box has had a reply. Before that, the necessary hold is not known. */
  get hasMeasured(): boolean {
    return this.#meter.hasMeasured
  }

  /**
   * Number of permits that this process reserves ahead: an equal part of one window for each waiting process, rounded
   * at random, so that the parts of all add up to one window. If the window is shorter than the time until the next
   * reply, it reserves its part of all permits of that time. If a process is paused, its reserved permits are wasted:
   * the engine can't grant them to others, because the process may have used them just before. So a pause costs the
   * other processes one part, regardless of the number of its callers and the length of the pause. A smaller part
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

  /** Returns the time until each waiting process has had one permit, in milliseconds. */
  rotation({ windows }: BoxTerms): number {
    return this.#contenders * Math.max(...windows.map(({ limit, per }) => per / limit))
  }

  /** The average time from a request to its reply, in milliseconds; 0 before the first reply. */
  get roundTrip(): number {
    return this.#roundTrip ?? 0
  }

  /** Records the state in a reply. @param askedAt clock time of the request. @param now clock time of the reply. */
  learn({ reserved, ...bounds }: PermitReservation, askedAt: number, now: number): Decided {
    if (reserved.contenders > 0) this.#contenders = reserved.contenders
    const taken = now - askedAt
    this.#roundTrip = taken * NEWEST + (this.#roundTrip ?? taken) * (1 - NEWEST)
    const [earliest, latest] = this.#offset.learn(reserved.now, bounds.earliest, bounds.latest)
    this.noteUse(earliest, now)
    return { earliest, latest }
  }

  /**
   * Records the delay of a decision or a permit. @param earliest the earliest clock time at which it may have begun.
   */
  noteUse(earliest: number, now: number): void {
    this.#meter.note(now - earliest, now)
  }
}
