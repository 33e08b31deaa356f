import type { Clock } from '../../clock.js'
import type { Guarantees } from '../../guarantees.js'
import { StateMachine, type AnyEffect } from '../../engine/state-machine.js'
import type {
  Engine,
  Listener,
  SessionInfo,
  Operation,
  OutcomeOf,
  Reservation,
} from '../../engine/contract.js'
import { reserve, type Reserve } from '../../limits/rules/reserve.js'
import { wallOf } from '../../clock.js'
import { MemoryLimits } from './limits.js'
import { MemoryState } from '../../engine/kit/memory-state.js'

/** What the memory engine promises, and what it can't. */
export const memoryGuarantees: Guarantees = {
  engine: 'memory',
  scope: 'thread',
  deadHolder: 'at once',
  durability: 'process',
  weaknesses: [
    {
      promise: 'P2',
      how: 'Tokens begin at the wall clock when the process starts, so a wall clock that was set back between two runs lets them fall.',
    },
    { promise: 'P13', how: 'State lives in the process and ends with it.' },
  ],
}

/** What all boxes of one `memory:` name share: one lock table, one store, and the limiters. */
export class MemorySpace {
  readonly state: MemoryState
  readonly effects: AnyEffect[] = []
  readonly decisions: StateMachine
  readonly listeners = new Map<string, Listener>()
  readonly limits: MemoryLimits

  constructor(clock: Clock) {
    this.state = new MemoryState(Date.now() * 1000, clock)
    this.limits = new MemoryLimits(clock)
    this.decisions = new StateMachine(this.state, effect => this.effects.push(effect))
  }
}

/** The lock table in a variable: locks and state within one thread, every answer at once. */
export class MemoryEngine implements Engine {
  readonly guarantees = memoryGuarantees
  readonly tellsWanted = true
  readonly #space: MemorySpace
  readonly #clock: Clock
  #session = ''

  constructor(
    readonly name: string,
    space: MemorySpace,
    clock: Clock,
  ) {
    this.#space = space
    this.#clock = clock
  }

  join(member: SessionInfo, listener: Listener): void {
    this.#session = member.session
    this.#space.state.join(member)
    this.#space.listeners.set(member.session, listener)
  }

  submit<O extends Operation>(operation: O): OutcomeOf<O> {
    const { decisions, effects, state } = this.#space
    // What is kept without being used is nobody's: it has to be given back before anybody else asks or looks.
    if (operation.type === 'enqueue') for (const { key } of operation.request.claims) this.#tellWanted(key)
    else if (operation.type === 'poll') this.#tellWaiting(operation.request.id)
    else if (operation.type === 'forceRelease') this.#tellWanted(operation.key)
    else if (operation.type === 'inspect')
      for (const key of state.keys(operation.prefix)) this.#tellWanted(key)
    const outcome = decisions.decide(operation, this.#clock.now())
    if (effects.length > 0) this.#tell()
    return outcome
  }

  reserve(request: Reserve): Reservation {
    const { limits } = this.#space
    const now = this.#clock.now()
    const decision = reserve(limits.get(request.limiter), request, now, wallOf(this.#clock)())
    limits.set(request.limiter, decision.state, now + decision.forgottenIn)
    return { reserved: decision.reserved, earliest: now, latest: now }
  }

  leave(): void {
    const { state, listeners } = this.#space
    listeners.delete(this.#session)
    this.submit({ type: 'revoke', session: this.#session })
    state.leave(this.#session)
  }

  /** A waiter that looks again: whoever was granted while this thread stood still may not know of it. */
  #tellWaiting(id: string): void {
    const request = this.#space.state.request(id)
    if (request?.phase === 'waiting') for (const { key } of request.claims) this.#tellWanted(key)
  }

  #tellWanted(key: string): void {
    const queue = this.#space.state.queue(key)
    if (!queue) return
    // A copy, because whoever does not use its grant gives it back within the call.
    for (const { request } of [...queue]) {
      if (request.phase === 'held') this.#space.listeners.get(request.session)?.wanted(request.id)
    }
  }

  /**
   * Tells the boxes, whose answers may cause further effects: those find an emptied list of their own. A reservation
   * is claimed within this call, so nobody has to look after its window.
   */
  #tell(): void {
    const { effects, listeners } = this.#space
    for (const effect of effects.splice(0)) {
      const listener = listeners.get(effect.session)
      if (effect.type === 'changed') listener?.changed(effect.key)
      else listener?.[effect.type](effect.id)
    }
  }
}
