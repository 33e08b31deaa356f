import type { Clock } from '../../clock.js'
import { InvalidArgumentError } from '../../errors.js'
import type { Guarantees } from '../../guarantees.js'
import type { KeptLimiter } from '../../engine/limits/report.js'
import type { Reserve } from '../../engine/limits/reserve.js'
import type { Claim } from '../../engine/claim.js'
import type {
  Engine,
  Enqueue,
  ExtendOrYield,
  Listener,
  LockRequest,
  SessionInfo,
  Operation,
  OutcomeOf,
  Read,
  ReadOutcome,
  RecordedId,
  Reservation,
  RequestStatus,
  Versioned,
} from '../../engine/contract.js'
import { giveBack } from '../../engine/give-back.js'
import { keysOf } from './call.js'
import { groupedBy } from '../../grouped.js'
import type { RedisEngine } from './redis-engine.js'

/** What a request asks for in one slot. */
interface Part {
  /** With shared claims after a downgrade. */
  request: LockRequest
  /** The number that it has in its slot; 0 while it has none. */
  number: number
}

/** A request over several slots: its parts in the order in which they are asked for. */
interface Wide {
  readonly enqueue: Enqueue
  readonly parts: readonly Part[]
  /** How many parts are held. */
  held: number
  /** The greatest number of its parts, once all are held. */
  number: number
  isOver: boolean
}

/**
 * Locks over several slots of a Redis Cluster, which no script can reach together: the slots are visited in one order,
 * the same for all, and the claims of each enter its queues in one step. That order keeps circles from closing; but
 * what the slots visited first gave stays held while the others are waited for.
 */
export class SlotsEngine implements Engine {
  readonly name: string
  readonly guarantees: Guarantees
  readonly reportsContention = false
  /** Carries out every operation whose keys lie in one hash slot. */
  readonly #engine: RedisEngine
  readonly #clock: Clock
  #hasLeft = false
  readonly #wide = new Map<string, Wide>()
  /** By the id of a part: the id of its request. */
  readonly #whole = new Map<string, string>()

  constructor(engine: RedisEngine, clock: Clock) {
    this.#engine = engine
    this.#clock = clock
    this.name = engine.name
    this.guarantees = engine.guarantees
  }

  async join(member: SessionInfo, listener: Listener): Promise<void> {
    await this.#engine.join(member, {
      wake: id => listener.wake(this.#whole.get(id) ?? id),
      lost: id => listener.lost(this.#whole.get(id) ?? id),
      wanted: id => listener.wanted(this.#whole.get(id) ?? id),
      reserved: key => listener.reserved(key),
      changed: key => listener.changed(key),
      missed: () => listener.missed(),
      ended: cause => listener.ended(cause),
    })
  }

  submit<O extends Operation>(operation: O): Promise<OutcomeOf<O>>
  async submit(operation: Operation): Promise<unknown> {
    switch (operation.type) {
      case 'enqueue': {
        const { claims } = operation.request
        const bySlot = this.#split(claims)
        if (operation.read) this.#refuseSpread([...operation.read.keys, ...claims.map(({ key }) => key)])
        return bySlot.length === 1 ? this.#engine.submit(operation) : this.#begin(operation, bySlot)
      }
      case 'read':
        return this.#read(operation)
      case 'commit':
        this.#refuseSpread(keysOf(operation))
        return this.#engine.submit(operation)
      case 'poll':
      case 'cancel':
      case 'renew':
      case 'release':
      case 'extendOrYield':
      case 'downgrade': {
        const wide = this.#wide.get(operation.request.id)
        return wide ? this.#ofWide(wide, operation) : this.#engine.submit(operation)
      }
      default:
        return this.#engine.submit(operation)
    }
  }

  wallClock(): Promise<number> {
    return this.#engine.wallClock()
  }

  /** A limiter lies in one slot. */
  reserve(request: Reserve): Promise<Reservation> {
    return this.#engine.reserve(request)
  }

  limiters(isMeant: (limiter: string) => boolean): Promise<readonly KeptLimiter[]> {
    return this.#engine.limiters(isMeant)
  }

  async leave(): Promise<void> {
    this.#hasLeft = true
    await this.#engine.leave()
  }

  /** The claims of each slot, in the order of the slots. */
  #split(claims: readonly Claim[]): (readonly Claim[])[] {
    const bySlot = groupedBy(claims, ({ key }) => this.#engine.slotOf(key))
    return [...bySlot].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, together]) => together)
  }

  /** @throws InvalidArgumentError when no script could reach all these keys */
  #refuseSpread(keys: readonly string[]): void {
    const [first, ...others] = keys
    const spread = others.find(key => this.#engine.slotOf(key) !== this.#engine.slotOf(first!))
    if (spread === undefined) return
    throw new InvalidArgumentError(
      `the keys of a transaction on Redis Cluster must be in one hash slot, not ${first!} and ${spread}; give them ` +
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

  #begin(enqueue: Enqueue, bySlot: readonly (readonly Claim[])[]): Promise<RequestStatus> {
    const { request } = enqueue
    const { id } = request
    const parts = bySlot.map((claims, index) => ({
      request: { ...request, id: `${id}/${index}`, claims },
      number: 0,
    }))
    const wide: Wide = { enqueue, parts, held: 0, number: 0, isOver: false }
    this.#wide.set(id, wide)
    for (const part of parts) this.#whole.set(part.request.id, id)
    return this.#goOn(wide)
  }

  /** Asks for the parts that are not held yet, one after the other. */
  async #goOn(wide: Wide): Promise<RequestStatus> {
    const { enqueue, parts } = wide
    while (wide.held < parts.length) {
      const part = parts[wide.held]!
      const answer = await this.#orGiveBack(wide, () =>
        this.#engine.submit({ ...enqueue, request: part.request, read: undefined }),
      )
      const status = await this.#took(wide, part, answer)
      if (status) return status
    }
    const number = Math.max(...parts.map(part => part.number))
    const raised = await this.#orGiveBack(wide, () =>
      Promise.all(parts.map(part => this.#raise(part, number, enqueue.lease))),
    )
    if (!wide.isOver && !raised.every(Boolean)) await this.#giveBack(wide)
    if (wide.isOver) return { state: 'gone' }
    wide.number = number
    return { state: 'held', id: enqueue.request.id, number }
  }

  /** Raises the number of a part, and with it all that its slot gives from now on. False when the part is lost. */
  async #raise(part: Part, number: number, lease: number): Promise<boolean> {
    if (part.number === number) return true
    const renewal = { type: 'renew', request: part.request, number: part.number, lease } as const
    const isHeld = await this.#engine.submit(renewal, { order: number, least: number })
    if (isHeld) part.number = number
    return isHeld
  }

  /** Takes note of what became of a part. @returns the status of the whole, unless that part is held now. */
  async #took(wide: Wide, part: Part, status: RequestStatus): Promise<RequestStatus | undefined> {
    const { enqueue } = wide
    // The caller has given up meanwhile.
    if (wide.isOver) {
      await this.#takeOut(part, enqueue.lease)
      return { state: 'gone' }
    }
    switch (status.state) {
      case 'held':
        part.number = status.number
        wide.held++
        return undefined
      case 'queued':
        // By its looks the parts that are held already stay alive.
        return {
          ...status,
          id: enqueue.request.id,
          lookAgain: Math.min(status.lookAgain, enqueue.lease / 3),
        }
      default:
        await this.#giveBack(wide)
        return status
    }
  }

  async #ofWide(
    wide: Wide,
    operation: Exclude<Extract<Operation, { request: LockRequest }>, Enqueue>,
  ): Promise<unknown> {
    const { parts } = wide
    for (const [index, claims] of this.#split(operation.request.claims).entries()) {
      const part = parts[index]!
      part.request = { ...part.request, claims }
    }
    switch (operation.type) {
      case 'poll': {
        const asked = parts.slice(0, wide.held + 1)
        const answers = await Promise.all(
          asked.map(part => this.#engine.submit({ ...operation, request: part.request })),
        )
        const held = wide.held
        for (const [index, part] of asked.entries()) {
          const answer = answers[index]!
          if (index === held) return (await this.#took(wide, part, answer)) ?? this.#goOn(wide)
          if (answer.state === 'held') continue
          await this.#giveBack(wide)
          return { state: 'gone' } satisfies RequestStatus
        }
        return { state: 'held', id: operation.request.id, number: wide.number } satisfies RequestStatus
      }
      case 'cancel':
        await this.#giveBack(wide)
        return undefined
      case 'release':
        return wide.number === operation.number && (await this.#release(wide))
      case 'renew':
      case 'downgrade': {
        if (wide.number !== operation.number) return false
        const done = await Promise.all(
          parts.map(({ request, number }) => this.#engine.submit({ ...operation, request, number })),
        )
        return done.every(Boolean)
      }
      case 'extendOrYield':
        return this.#extendOrYield(wide, operation)
    }
  }

  /** Whether another request waits is not known of all slots at once, so the next request queues behind. */
  async #extendOrYield(wide: Wide, { number, next, lease, wait }: ExtendOrYield): Promise<RequestStatus> {
    if (wide.number !== number || !(await this.#release(wide))) return { state: 'gone' }
    return this.#begin({ type: 'enqueue', request: next, lease, wait }, this.#split(next.claims))
  }

  async #release(wide: Wide): Promise<boolean> {
    const released = await this.#orGiveBack(wide, () =>
      Promise.all(
        wide.parts.map(({ request, number }) => this.#engine.submit({ type: 'release', request, number })),
      ),
    )
    this.#forget(wide)
    return released.every(Boolean)
  }

  /** Takes all parts out, whatever became of them; what can't be reached now is tried again in the background. */
  async #giveBack(wide: Wide): Promise<void> {
    wide.isOver = true
    this.#forget(wide)
    await Promise.all(wide.parts.map(part => this.#takeOut(part, wide.enqueue.lease)))
  }

  /** Settles after the first attempt, whatever came of it. */
  async #takeOut({ request }: Part, lease: number): Promise<void> {
    const cancel = (): Promise<unknown> => this.#engine.submit({ type: 'cancel', request })
    await Promise.allSettled([giveBack(cancel, lease, this.#clock, () => this.#hasLeft)])
  }

  /** Does something of which a failure leaves nothing behind. */
  async #orGiveBack<T>(wide: Wide, task: () => Promise<T>): Promise<T> {
    try {
      return await task()
    } catch (error) {
      await this.#giveBack(wide)
      throw error
    }
  }

  #forget(wide: Wide): void {
    this.#wide.delete(wide.enqueue.request.id)
    for (const { request } of wide.parts) this.#whole.delete(request.id)
  }
}
