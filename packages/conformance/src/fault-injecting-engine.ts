import type {
  Awaitable,
  Engine,
  Listener,
  Operation,
  OutcomeOf,
  Outcomes,
  PermitReservation,
  ReservePermits,
  SessionInfo,
} from 'signalbox/engine'
import type { Guarantees } from 'signalbox'

/** An outcome of any operation. */
export type AnyOutcome = Outcomes[keyof Outcomes]

/** Answers an operation in place of the engine. Each call of `execute` executes it in the engine. */
export type Intercept = (operation: Operation, execute: () => Promise<AnyOutcome>) => Promise<AnyOutcome>

/** A hint on its way to the box. */
export interface Hint {
  readonly type: Exclude<keyof Listener, 'ended'>
  /** Its request or key; empty if it concerns all. */
  readonly id: string
}

/** An engine that records the operations of one box and can disturb them. Its answers are always asynchronous. */
export class FaultInjectingEngine implements Engine {
  /** All operations of the box, in order. */
  readonly operations: Operation[] = []
  /** Disturbs operations. By default, it executes them. */
  intercept: Intercept = (_, execute) => execute()
  /** Whether a hint reaches the box. */
  delivers: (hint: Hint) => boolean = () => true
  readonly guarantees: Guarantees
  readonly name: string
  /** False, as for an engine outside this thread. */
  readonly reportsContention = false
  readonly canSteal: boolean
  readonly coversBySigns: boolean
  /** Disturbs reservations. By default, it executes them. */
  interceptReserve: (
    request: ReservePermits,
    execute: () => Promise<PermitReservation>,
  ) => Promise<PermitReservation> = (_, execute) => execute()
  readonly reservePermits?: (request: ReservePermits) => Promise<PermitReservation>
  readonly limiters?: NonNullable<Engine['limiters']>
  /** Answers in place of the engine's wall clock. */
  wallClock?: () => Promise<number>
  readonly #engine: Engine
  #listener: Listener | undefined
  readonly #underWay = new Set<Promise<AnyOutcome>>()

  constructor(engine: Engine) {
    this.#engine = engine
    if (engine.limiters) this.limiters = isMeant => engine.limiters!(isMeant)
    if (engine.reservePermits) {
      this.reservePermits = request =>
        this.interceptReserve(request, async () => engine.reservePermits!(request))
    }
    if (engine.wallClock) this.wallClock = async () => engine.wallClock!()
    this.canSteal = engine.canSteal ?? false
    this.coversBySigns = engine.coversBySigns ?? false
    this.guarantees = engine.guarantees
    this.name = engine.name
  }

  join(member: SessionInfo, listener: Listener): Awaitable<void> {
    this.#listener = listener
    return this.#engine.join(member, {
      wake: id => this.delivers({ type: 'wake', id }) && listener.wake(id),
      lost: (id, cause) => this.delivers({ type: 'lost', id }) && listener.lost(id, cause),
      contended: id => this.delivers({ type: 'contended', id }) && listener.contended(id),
      reserved: key => this.delivers({ type: 'reserved', id: key }) && listener.reserved(key),
      changed: key => this.delivers({ type: 'changed', id: key }) && listener.changed(key),
      missed: () => this.delivers({ type: 'missed', id: '' }) && listener.missed(),
      ended: cause => listener.ended(cause),
    })
  }

  async submit<O extends Operation>(operation: O): Promise<OutcomeOf<O>> {
    this.operations.push(operation)
    const execute = async (): Promise<AnyOutcome> => this.#engine.submit(operation)
    const outcome = this.intercept(operation, execute)
    this.#underWay.add(outcome)
    try {
      return (await outcome) as OutcomeOf<O>
    } finally {
      this.#underWay.delete(outcome)
    }
  }

  certainUntil(): number {
    return this.#engine.certainUntil?.() ?? Infinity
  }

  leave(): Awaitable<void> {
    return this.#engine.leave()
  }

  /** Sends the box a hint that the engine has not sent. */
  forge({ type, id }: Hint): void {
    this.#listener?.[type](id)
  }

  /** Returns the number of operations of a type. */
  count(type: Operation['type']): number {
    return this.operations.filter(operation => operation.type === type).length
  }

  /** Executes operations and reservations undisturbed again. */
  restore(): void {
    this.intercept = (_, execute) => execute()
    this.interceptReserve = (_, execute) => execute()
  }

  /** Rejects operations of these types with the error, and executes all others. */
  fail(types: readonly Operation['type'][], error: Error): void {
    this.intercept = ({ type }, execute) => (types.includes(type) ? Promise.reject(error) : execute())
  }

  /** Waits until all operations are answered. */
  async answered(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay)
  }

  /**
   * Cuts the box off from the engine, as if its process had been stopped. It waits for operations under way first,
   * because the engine could still carry them out and grant a request later.
   */
  async freeze(): Promise<void> {
    await this.answered()
    this.intercept = () => new Promise(() => undefined)
    this.delivers = () => false
  }
}
