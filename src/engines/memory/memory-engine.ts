import type { Clock } from '../../base/clock.js'
import type { Guarantees } from '../../base/guarantees.js'
import type { Listener, Operation, OutcomeOf, RequestStatus, SessionInfo } from '../../engine/contract.js'
import { MemoryState } from '../../engine/kit/memory-state.js'
import { StateEngine, type EngineState, type Hint } from '../../engine/kit/state-engine.js'

/** The guarantees of the memory engine. */
export const memoryGuarantees: Guarantees = {
  engine: 'memory',
  scope: 'thread',
  deadHolder: 'at once',
  durability: 'process',
  weaknesses: [
    {
      promise: 'P2',
      how:
        'The first token is taken from the wall clock when the process starts. So tokens decrease if the ' +
        'wall clock was set back between two runs.',
    },
    { promise: 'P13', how: 'State lives in the process and is lost when it ends.' },
  ],
}

/** The state and the listeners that all boxes of one `memory:` name share. */
export class MemorySpace {
  readonly state: MemoryState
  /** The listeners, by session. */
  readonly listeners = new Map<string, Listener>()

  constructor(clock: Clock) {
    this.state = new MemoryState(Date.now() * 1000, clock)
  }
}

/**
 * Keeps locks, values and limits in variables, for boxes of one thread. Every operation returns its outcome at once.
 */
export class MemoryEngine extends StateEngine {
  readonly guarantees = memoryGuarantees
  override readonly reportsContention = true
  readonly canSteal = true
  protected override readonly losesHints = false
  readonly #space: MemorySpace
  #session = ''

  constructor(
    readonly name: string,
    space: MemorySpace,
    clock: Clock,
  ) {
    super(clock)
    this.#space = space
  }

  override join(info: SessionInfo, listener: Listener): void {
    this.#session = info.session
    this.#space.listeners.set(info.session, listener)
    void super.join(info, listener)
  }

  override submit<O extends Operation>(operation: O): OutcomeOf<O>
  override submit(operation: Operation): unknown {
    this.#askBack(operation)
    const outcome = super.submit(operation)
    // Checked after the operation, because a session that it notified may have sent another request meanwhile.
    return isHeld(outcome) && this.#isUncontended(outcome.id) ? { ...outcome, isUncontended: true } : outcome
  }

  override leave(): void {
    this.#space.listeners.delete(this.#session)
    void super.leave()
  }

  protected override transact<T>(work: (state: EngineState) => T): T {
    return work(this.#space.state)
  }

  protected override notify({ session }: SessionInfo, { type, about }: Hint): void {
    this.#space.listeners.get(session)?.[type](about)
  }

  /** Asks the holders of an operation's keys to return unused grants, before the operation is decided. */
  #askBack(operation: Operation): void {
    switch (operation.type) {
      case 'enqueue':
        for (const { key } of operation.request.claims) this.#notifyContention(key)
        return
      case 'checkIn': {
        // A holder that was granted during a stall of this thread may not know of the waiter.
        const request = this.#space.state.request(operation.request.id)
        if (request?.phase === 'waiting') for (const { key } of request.claims) this.#notifyContention(key)
        return
      }
      case 'alive': {
        const { state } = this.#space
        const waiting = operation.requests.filter(({ id }) => state.request(id)?.phase === 'waiting')
        for (const key of new Set(waiting.flatMap(({ claims }) => claims.map(each => each.key))))
          this.#notifyContention(key)
        return
      }
      case 'forceRelease':
        return this.#notifyContention(operation.key)
      case 'inspect':
        for (const key of this.#space.state.keys(operation.prefix)) this.#notifyContention(key)
        return
      default:
    }
  }

  /** Whether the request is the only one on all of its keys. */
  #isUncontended(id: string): boolean {
    const { state } = this.#space
    return state.request(id)?.claims.every(({ key }) => state.queue(key)!.length === 1) ?? false
  }

  #notifyContention(key: string): void {
    const queue = this.#space.state.queue(key)
    if (!queue) return
    // Copies the queue, because a box may return an unused grant during the call.
    for (const { request } of [...queue]) {
      if (request.phase === 'held') this.#space.listeners.get(request.session)?.contended(request.id)
    }
  }
}

function isHeld(outcome: unknown): outcome is RequestStatus & { state: 'held' } {
  return (outcome as RequestStatus | undefined)?.state === 'held'
}
