import type {
  Awaitable,
  Engine,
  Listener,
  SessionInfo,
  Operation,
  OutcomeOf,
  PermitReservation,
} from '../../src/engine/contract.js'
import type { Guarantees } from '../../src/base/guarantees.js'
import type { KeptLimiter } from '../../src/engine/limits/report.js'
import type { ReservePermits } from '../../src/engine/limits/reservation.js'
import type { Random } from '../../packages/conformance/src/random.js'
import { DistantLine } from '../support/distant-line.js'

/** Delays the requests, replies and hints of an engine. Each of these streams keeps its order. */
export class DistantEngine implements Engine {
  readonly name: string
  readonly guarantees: Guarantees
  readonly reportsContention = false
  readonly canSteal: boolean
  readonly coversBySigns: boolean
  readonly wallClock?: () => Promise<number>
  readonly #engine: Engine
  readonly #random: Random
  readonly #line = new DistantLine(() => this.#way())

  constructor(engine: Engine, random: Random) {
    this.#engine = engine
    this.#random = random
    this.name = engine.name
    this.guarantees = engine.guarantees
    this.canSteal = engine.canSteal ?? false
    this.coversBySigns = engine.coversBySigns ?? false
    if (engine.wallClock) this.wallClock = () => this.#line.send(async () => engine.wallClock!())
  }

  join(member: SessionInfo, listener: Listener): Awaitable<void> {
    return this.#engine.join(member, this.#line.hintsFor(listener))
  }

  submit<O extends Operation>(operation: O): Promise<OutcomeOf<O>> {
    return this.#line.send(() => this.#engine.submit(operation))
  }

  reservePermits(request: ReservePermits): Promise<PermitReservation> {
    return this.#line.send(() => this.#engine.reservePermits!(request))
  }

  limiters(isMeant: (limiter: string) => boolean): Promise<readonly KeptLimiter[]> {
    return this.#line.send(() => this.#engine.limiters!(isMeant))
  }

  async leave(): Promise<void> {
    await this.#line.arrived()
    await this.#engine.leave()
  }

  /** Delays a message between the box and the engine by some turns of the event loop. */
  async #way(): Promise<void> {
    for (let turns = this.#random.below(4); turns > 0; turns--) await new Promise(setImmediate)
  }
}
