import { wallOf, type Clock } from '../../base/clock.js'
import { boxClosed } from '../../base/errors.js'
import type { Guarantees } from '../../base/guarantees.js'
import { reportOf, type KeptLimiter } from '../limits/report.js'
import { reservePermits, type LimiterState } from '../limits/reserve-permits.js'
import type { ReservePermits } from '../limits/reservation.js'
import type { StoreState } from '../commit.js'
import type {
  Awaitable,
  Engine,
  Listener,
  LockRequest,
  Operation,
  OutcomeOf,
  PermitReservation,
  SessionInfo,
} from '../contract.js'
import type { TableState } from '../table-state.js'
import { StateMachine, type AnyEffect, type WatchState } from '../state-machine.js'
import { Withdrawals } from './withdrawals.js'

/** The whole state of an engine, as one transaction sees it. */
export interface EngineState extends TableState, StoreState, WatchState {
  /** Adds a session, with its process. */
  join(info: SessionInfo): void
  /** Removes a session, and its watches. */
  leave(session: string): void
  member(session: string): SessionInfo | undefined
  limiter(name: string): LimiterState | undefined
  /** The names of all limiters. */
  limiterNames(): readonly string[]
  /** @param forgottenIn milliseconds after which the state has no effect any more, and can be deleted. */
  keepLimiter(name: string, state: LimiterState, forgottenIn: number): void
}

/** A hint for a session. */
export interface Hint {
  readonly type: 'wake' | 'lost' | 'changed'
  /** The ID of the request, or the store key that has changed. */
  readonly about: string
}

/** The purpose of a transaction. */
export type Purpose = Operation | { readonly type: 'join' | 'leave' | 'reservePermits' | 'limiters' }

/** The time of a decision, in milliseconds. */
export interface Moment {
  /** By the clock that all processes share. */
  readonly now: number
  /** Since 1970. */
  readonly wall: number
  /** Its bounds by the clock of this process. */
  readonly earliest: number
  readonly latest: number
}

/** An effect, and the process of its session if that is another session and known. */
interface AddressedEffect {
  readonly effect: AnyEffect
  readonly to: SessionInfo | undefined
}

/** The outcome of an operation, and its effects. */
interface Decided<Outcome> {
  readonly outcome: Outcome
  readonly effects: readonly AddressedEffect[]
}

/**
 * An engine that can change its whole state in one step: variables, a file, or an entry with compare-and-set. A
 * subclass implements `transact` and `notify`; this class implements locks, values, limits, watches, `join` and `leave`
 * by them.
 */
export abstract class StateEngine implements Engine {
  abstract readonly name: string
  abstract readonly guarantees: Guarantees
  readonly reportsContention: boolean = false
  readonly coversBySigns: boolean = true
  /** The clock of leases, which all processes that share the state share. */
  protected readonly clock: Clock
  /**
   * Whether a hint may be lost. Then a session that has reserved a key for another one sweeps it after the claim
   * window. An engine within one thread loses no hints.
   */
  protected readonly losesHints: boolean = true
  readonly #ownClock: Clock
  #session = ''
  #listener: Listener | undefined
  readonly #withdrawals = new Withdrawals()
  #underway = 0
  #onIdle: (() => void) | undefined

  /** Undefined for an engine without limits. */
  readonly reservePermits?: (request: ReservePermits) => Awaitable<PermitReservation>
  readonly limiters?: (isMeant: (limiter: string) => boolean) => Awaitable<readonly KeptLimiter[]>

  /**
   * @param ownClock the clock of this process, if the shared one differs.
   * @param hasLimits false for an engine whose processes share no clock.
   */
  constructor(clock: Clock, ownClock = clock, hasLimits = true) {
    this.clock = clock
    this.#ownClock = ownClock
    if (!hasLimits) return
    this.reservePermits = request =>
      this.#whileJoined(() =>
        this.transact(state => this.#reservePermits(state, request), { type: 'reservePermits' }),
      )
    this.limiters = isMeant =>
      this.#whileJoined(() => this.transact(state => this.#limiters(state, isMeant), { type: 'limiters' }))
  }

  /**
   * Calls `work` with the state, and stores its changes in one step, or none. `work` has no other effects, so it may be
   * called again after another process has changed the state. Rejects with UnavailableError when certainly nothing was
   * stored, or IndeterminateError when the changes may have been stored.
   */
  protected abstract transact<T>(work: (state: EngineState) => T, purpose: Purpose): Awaitable<T>

  /**
   * Sends a hint to the engine of another session, which passes it to its box by {@link receive}. A hint may be lost.
   * Settles when the end of this process no longer prevents its delivery. Never rejects.
   */
  protected abstract notify(to: SessionInfo, hint: Hint): Awaitable<void>

  /** The time of a decision, by the shared clock. */
  protected now(): number {
    return this.clock.now()
  }

  /** The time of a decision by the shared clock, with its bounds by the clock of this process. */
  protected moment(): Moment {
    const earliest = this.#ownClock.now()
    const now = this.clock.now()
    return { now, wall: wallOf(this.#ownClock)(), earliest, latest: this.#ownClock.now() }
  }

  /** Called with each outcome before the caller gets it. It may reject as `submit` does. */
  protected settle?(operation: Operation, outcome: unknown): Awaitable<void>

  join(info: SessionInfo, listener: Listener): Awaitable<void> {
    const joined = this.transact(state => state.join(info), { type: 'join' })
    return andThen(joined, () => {
      this.#session = info.session
      this.#listener = listener
    })
  }

  submit<O extends Operation>(operation: O): Awaitable<OutcomeOf<O>> {
    return this.#whileJoined(() => this.#submit(operation))
  }

  withdraw(request: LockRequest): boolean {
    return this.#withdrawals.withdraw(request)
  }

  /** Releases all grants of the session, after all pending operations have settled. Never rejects. */
  leave(): Awaitable<void> {
    if (!this.#listener) return
    this.#listener = undefined
    if (this.#underway === 0) return this.#leave()
    return new Promise<void>(resolve => (this.#onIdle = resolve)).then(() => this.#leave())
  }

  /** Passes a hint to the box. */
  protected receive({ type, about }: Hint): void {
    this.#listener?.[type](about)
  }

  #submit<O extends Operation>(operation: O): Awaitable<OutcomeOf<O>> {
    const deciding = this.transact(state => this.#decide(state, operation), operation)
    if (!(deciding instanceof Promise)) return this.#deliver(operation, deciding)
    const delivering = deciding.then(decided => this.#deliver(operation, decided))
    return operation.type === 'enqueue' ? this.#enqueued(operation.request, delivering) : delivering
  }

  async #enqueued<Outcome>(request: LockRequest, answer: Promise<Outcome>): Promise<Outcome> {
    this.#withdrawals.sent(request)
    try {
      return await answer
    } finally {
      this.#withdrawals.answered(request)
    }
  }

  #decide<O extends Operation>(state: EngineState, operation: O): Decided<OutcomeOf<O>> {
    if (operation.type === 'enqueue' && this.#withdrawals.reached(operation.request))
      return { outcome: { state: 'busy' } as OutcomeOf<O>, effects: [] }
    const effects: AddressedEffect[] = []
    const machine = new StateMachine(state, effect => {
      const isOwn = effect.session === this.#session
      effects.push({ effect, to: isOwn ? undefined : state.member(effect.session) })
    })
    return { outcome: machine.decide(operation, this.now()), effects }
  }

  #deliver<Outcome>(operation: Operation, { outcome, effects }: Decided<Outcome>): Awaitable<Outcome> {
    const settling = this.settle?.(operation, outcome)
    const underway: Promise<unknown>[] = settling instanceof Promise ? [settling] : []
    for (const { effect, to } of effects) {
      const hint = { type: effect.type, about: effect.type === 'changed' ? effect.key : effect.id }
      const notified = to && this.notify(to, hint)
      if (notified instanceof Promise) underway.push(notified)
      if (effect.session === this.#session) {
        this.receive(hint)
        continue
      }
      // mutant: reservation-not-swept
      if (this.losesHints && effect.type === 'wake') this.#listener?.reserved(effect.key)
    }
    // The caller may end the process as soon as it has the outcome.
    // mutant: outcome-before-hint
    return underway.length === 0 ? outcome : Promise.all(underway).then(() => outcome)
  }

  #reservePermits(state: EngineState, request: ReservePermits): PermitReservation {
    const { now, wall, earliest, latest } = this.moment()
    // A pause counts from the request, which may be later than the time of the decision.
    const pause = request.pause && request.pause + latest - earliest
    const decision = reservePermits(state.limiter(request.limiter), { ...request, pause }, now, wall)
    state.keepLimiter(request.limiter, decision.state, decision.forgottenIn)
    return { reserved: decision.reserved, earliest, latest }
  }

  #limiters(state: EngineState, isMeant: (limiter: string) => boolean): KeptLimiter[] {
    const { now, wall } = this.moment()
    return state.limiterNames().flatMap(name => {
      const known = isMeant(name) ? state.limiter(name) : undefined
      return (known && reportOf(name, known, now, wall)) ?? []
    })
  }

  #leave(): Awaitable<void> {
    const session = this.#session
    const revoked = this.#submit({ type: 'revoke', session })
    const left = andThen(revoked, () => this.transact(state => state.leave(session), { type: 'leave' }))
    // Grants that could not be released end with their leases.
    return left instanceof Promise ? left.catch(() => undefined) : left
  }

  /** Counts a promise as pending until it settles. */
  #whileJoined<T>(work: () => Awaitable<T>): Awaitable<T> {
    if (!this.#listener) return Promise.reject(boxClosed(this.name))
    const answer = work()
    if (!(answer instanceof Promise)) return answer
    this.#underway++
    const over = (): void => {
      if (--this.#underway === 0) this.#onIdle?.()
    }
    answer.then(over, over)
    return answer
  }
}

function andThen<T, U>(value: Awaitable<T>, next: (value: T) => Awaitable<U>): Awaitable<U> {
  return value instanceof Promise ? value.then(next) : next(value)
}
