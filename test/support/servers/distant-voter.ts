import type { Inspect, Listener, SessionInfo, Operation, OutcomeOf } from '../../../src/engine/contract.js'
import type { IdentifiedReport, RedisServer, VoteTerms } from 'signalbox/redis'
import type { Random } from '../../../packages/conformance/src/random.js'
import { DistantLine } from '../distant-line.js'

/** Delays the engine of one server by random times. Messages in each direction keep their order. */
export class DistantVoter implements RedisServer {
  readonly name: string
  readonly prefix: string
  /** Number of operations of each type. */
  readonly asked = new Map<string, number>()
  /** Whether hints get lost. */
  isDeaf = false
  readonly #engine: RedisServer
  readonly #random: Random
  readonly #longest: number
  readonly #line = new DistantLine(() => this.#way())

  /** @param longest maximum time for each way, in milliseconds */
  constructor(engine: RedisServer, random: Random, longest: number) {
    this.name = engine.name
    this.prefix = engine.prefix
    this.#engine = engine
    this.#random = random
    this.#longest = longest
  }

  join(member: SessionInfo, listener: Listener): Promise<void> {
    return this.#engine.join(
      member,
      this.#line.hintsFor(listener, () => this.isDeaf),
    )
  }

  submit<O extends Operation>(operation: O, vote?: VoteTerms): Promise<OutcomeOf<O>> {
    this.asked.set(operation.type, (this.asked.get(operation.type) ?? 0) + 1)
    return this.#line.send(() => this.#engine.submit(operation, vote))
  }

  listen(): Promise<void> {
    return this.#way().then(() => this.#engine.listen())
  }

  reports(inspect: Inspect): Promise<readonly IdentifiedReport[]> {
    return this.#engine.reports(inspect)
  }

  raise(least: number): Promise<void> {
    return this.#engine.raise(least)
  }

  async leave(): Promise<void> {
    await this.#line.arrived()
    await this.#engine.leave()
  }

  async #way(): Promise<void> {
    const duration = this.#random.below(this.#longest + 1)
    if (duration > 0) await new Promise(resolve => setTimeout(resolve, duration))
  }
}
