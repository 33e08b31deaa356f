import type { KeptLimiter } from '../../engine/limits/report.js'
import type { ReservePermits } from '../../engine/limits/reservation.js'
import type {
  Engine,
  Listener,
  Operation,
  OutcomeOf,
  Read,
  ReadOutcome,
  RecordedId,
  PermitReservation,
  SessionInfo,
  Versioned,
} from '../../engine/contract.js'
import { InvalidArgumentError } from '../../base/errors.js'
import { groupedBy } from '../../base/grouped.js'
import type { Guarantees } from '../../base/guarantees.js'
import { keysOf } from './call.js'
import type { RedisEngine } from './redis-engine.js'

/**
 * The engine on a Redis Cluster. A call reaches only the keys of one hash slot. So this engine rejects locks and
 * transactions on several slots, and reads slot by slot.
 */
export class ClusterEngine implements Engine {
  readonly name: string
  readonly guarantees: Guarantees
  readonly reportsContention = false
  readonly canSteal = true
  readonly coversBySigns = true
  readonly #engine: RedisEngine

  constructor(engine: RedisEngine) {
    this.#engine = engine
    this.name = engine.name
    this.guarantees = engine.guarantees
  }

  async join(member: SessionInfo, listener: Listener): Promise<void> {
    await this.#engine.join(member, listener)
  }

  submit<O extends Operation>(operation: O): Promise<OutcomeOf<O>>
  async submit(operation: Operation): Promise<unknown> {
    switch (operation.type) {
      case 'enqueue': {
        const locked = operation.request.claims.map(({ key }) => key)
        const { read } = operation
        this.#refuseSpread(read ? 'transaction' : 'lock', [...(read?.keys ?? []), ...locked])
        return this.#engine.submit(operation)
      }
      case 'read':
        return this.#read(operation)
      case 'commit':
        this.#refuseSpread('transaction', keysOf(operation))
        return this.#engine.submit(operation)
      default:
        return this.#engine.submit(operation)
    }
  }

  wallClock(): Promise<number> {
    return this.#engine.wallClock()
  }

  /** A limiter is in one slot. */
  reservePermits(request: ReservePermits): Promise<PermitReservation> {
    return this.#engine.reservePermits(request)
  }

  limiters(isMeant: (limiter: string) => boolean): Promise<readonly KeptLimiter[]> {
    return this.#engine.limiters(isMeant)
  }

  async leave(): Promise<void> {
    await this.#engine.leave()
  }

  /** @throws InvalidArgumentError when the keys are in several hash slots */
  #refuseSpread(what: 'lock' | 'transaction', keys: readonly string[]): void {
    const [first, ...others] = keys
    const spread = others.find(key => this.#engine.slotOf(key) !== this.#engine.slotOf(first!))
    if (spread === undefined) return
    throw new InvalidArgumentError(
      `the keys of a ${what} on Redis Cluster must be in one hash slot, not ${first!} and ${spread}; give them ` +
        'the same hash tag, like {orders}:1 and {orders}:2',
      { engine: this.name, key: spread },
    )
  }

  async #read(read: Read): Promise<ReadOutcome> {
    const keysBySlot = groupedBy(read.keys, key => this.#engine.slotOf(key))
    const idsBySlot = groupedBy(read.ids, ({ key }) => this.#engine.slotOf(key))
    const values = new Map<string, Versioned>()
    const seen = new Map<RecordedId, boolean>()
    const slots = new Set([...keysBySlot.keys(), ...idsBySlot.keys()])
    const parts = [...slots].map(async slot => {
      const keys = keysBySlot.get(slot) ?? []
      const ids = idsBySlot.get(slot) ?? []
      const outcome = await this.#engine.submit({ type: 'read', keys, ids })
      for (const [index, key] of keys.entries()) values.set(key, outcome.values[index]!)
      for (const [index, id] of ids.entries()) seen.set(id, outcome.seen[index]!)
    })
    await Promise.all(parts)
    return { values: read.keys.map(key => values.get(key)!), seen: read.ids.map(id => seen.get(id)!) }
  }
}
