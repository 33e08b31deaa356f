import type {
  Awaitable,
  Engine,
  Listener,
  SessionInfo,
  Operation,
  OutcomeOf,
  PermitReservation,
} from '../../src/engine/contract.js'
import type { Guarantees } from '../../src/guarantees.js'
import type { KeptLimiter } from '../../src/engine/limits/report.js'
import type { ReservePermits } from '../../src/engine/limits/reserve-permits.js'
import type { Random } from '../../packages/conformance/src/random.js'

/** Puts an engine at a distance: questions, answers and hints take their time, each kind in its order. */
export class DistantEngine implements Engine {
  readonly name: string
  readonly guarantees: Guarantees
  readonly reportsContention = false
  readonly canSteal: boolean
  readonly coversBySigns: boolean
  readonly wallClock?: () => Promise<number>
  readonly #engine: Engine
  readonly #random: Random
  #lastQuestion: Promise<unknown> = Promise.resolve()
  #lastAnswer: Promise<unknown> = Promise.resolve()
  #lastHint: Promise<unknown> = Promise.resolve()

  constructor(engine: Engine, random: Random) {
    this.#engine = engine
    this.#random = random
    this.name = engine.name
    this.guarantees = engine.guarantees
    this.canSteal = engine.canSteal ?? false
    this.coversBySigns = engine.coversBySigns ?? false
    if (engine.wallClock) this.wallClock = () => this.#send(async () => engine.wallClock!())
  }

  join(member: SessionInfo, listener: Listener): Awaitable<void> {
    const later = (tell: () => void): void => {
      this.#lastHint = this.#lastHint.then(() => this.#way()).then(tell)
    }
    return this.#engine.join(member, {
      wake: id => later(() => listener.wake(id)),
      lost: id => later(() => listener.lost(id)),
      contended: id => later(() => listener.contended(id)),
      reserved: key => later(() => listener.reserved(key)),
      changed: key => later(() => listener.changed(key)),
      missed: () => later(() => listener.missed()),
      ended: cause => later(() => listener.ended(cause)),
    })
  }

  submit<O extends Operation>(operation: O): Promise<OutcomeOf<O>> {
    return this.#send(() => this.#engine.submit(operation))
  }

  reservePermits(request: ReservePermits): Promise<PermitReservation> {
    return this.#send(() => this.#engine.reservePermits!(request))
  }

  limiters(isMeant: (limiter: string) => boolean): Promise<readonly KeptLimiter[]> {
    return this.#send(() => this.#engine.limiters!(isMeant))
  }

  async leave(): Promise<void> {
    await this.#lastQuestion
    await this.#engine.leave()
  }

  #send<T>(execute: () => Awaitable<T>): Promise<T> {
    const carriedOut = this.#lastQuestion.then(() => this.#way()).then(execute)
    this.#lastQuestion = carriedOut.catch(() => undefined)
    const before = this.#lastAnswer
    const answer = this.#answered(carriedOut, before)
    this.#lastAnswer = answer.catch(() => undefined)
    return answer
  }

  async #answered<T>(carriedOut: Promise<T>, before: Promise<unknown>): Promise<T> {
    try {
      return await carriedOut
    } finally {
      await this.#way()
      await before
    }
  }

  /** The time between the box and the engine: some turns of the event loop. */
  async #way(): Promise<void> {
    for (let turns = this.#random.below(4); turns > 0; turns--) await new Promise(setImmediate)
  }
}
