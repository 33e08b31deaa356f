import type { Clock, Timer, VirtualClock } from '../../../src/base/clock.js'
import { UnavailableError } from '../../../src/base/errors.js'
import type { PermitReservation } from '../../../src/engine/contract.js'
import { BoxLimiters, type BoxLimiter } from '../../../src/limits/remote/box-limiter.js'
import type { BoxLimiterOptions } from '../../../src/limits/remote/box-limiter-options.js'
import type { ReservePermits } from '../../../src/engine/limits/reservation.js'
import { lock, type Server } from './deciding-server.js'
import type { NaiveCount } from './naive-count.js'

/** Returns the time until which a process does nothing, or the time itself if the process is free. */
export type FreeAt = (time: number) => number

let boxes = 0

/** A process at a distance from its engine. It has time for timers and answers only now and then. */
export class DistantBox implements Clock {
  /** Round-trip time of a request and its answer, in milliseconds. */
  roundTrip: number
  /** Additional delay of each request or answer, in milliseconds. */
  jitter = { request: (): number => 0, answer: (): number => 0 }
  freeAt: FreeAt = time => time
  /** Whether its engine is unreachable. */
  isAway = false
  /** Number of its requests. */
  asked = 0
  readonly limiter: BoxLimiter
  /** Times at which this process got a permit. */
  readonly given: number[] = []
  readonly #clock: VirtualClock
  readonly server: Server

  constructor(clock: VirtualClock, server: Server, roundTrip: number, options: BoxLimiterOptions) {
    this.#clock = clock
    this.server = server
    this.roundTrip = roundTrip
    const ask = (request: ReservePermits): Promise<PermitReservation> => this.#ask(request)
    const source = { clock: this, engine: 'test:', session: `box ${++boxes}`, ask, lock }
    this.limiter = new BoxLimiters(source).limiter('api', options)
  }

  now(): number {
    return this.#clock.now()
  }

  after(delay: number, task: () => void): Timer {
    let timer = this.#clock.after(delay, () => {
      const rest = this.freeAt(this.now()) - this.now()
      if (rest <= 0) task()
      else timer = this.after(rest, task)
    })
    return { cancel: () => timer.cancel() }
  }

  /** Starts callers that acquire one permit after another. */
  work(callers: number, count: NaiveCount): void {
    const call = async (): Promise<void> => {
      await this.limiter.acquire()
      count.add(this.now(), 1)
      this.given.push(this.now())
      return call()
    }
    for (let caller = 0; caller < callers; caller++) void call()
  }

  async #ask(request: ReservePermits): Promise<PermitReservation> {
    this.asked++
    if (this.isAway) throw new UnavailableError('away', {})
    const earliest = this.now()
    // A message under way continues to travel while the process is stopped.
    await new Promise<void>(resolve => this.#clock.after(this.roundTrip / 2 + this.jitter.request(), resolve))
    const reserved = this.server.decide(request)
    await new Promise<void>(resolve => this.after(this.roundTrip / 2 + this.jitter.answer(), resolve))
    return { reserved, earliest, latest: this.now() }
  }
}
