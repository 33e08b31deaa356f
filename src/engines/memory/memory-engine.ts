import { systemClock, type Clock } from '../../base/clock.js'
import { InvalidArgumentError, shown } from '../../base/errors.js'
import type { Guarantees } from '../../base/guarantees.js'
import type {
  Listener,
  LockRequest,
  Operation,
  OutcomeOf,
  RequestStatus,
  SessionInfo,
} from '../../engine/contract.js'
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
    for (const key of this.#keysToAsk(operation)) this.#notifyContention(key)
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

  /** The keys whose holders have to return unused grants before the operation is decided. */
  #keysToAsk(operation: Operation): readonly string[] {
    switch (operation.type) {
      case 'enqueue':
        return operation.request.claims.map(({ key }) => key)
      case 'checkIn':
        // A holder that was granted during a stall of this thread may not know of the waiter.
        return this.#keysOfWaiting([operation.request])
      case 'alive':
        return this.#keysOfWaiting(operation.requests)
      case 'forceRelease':
        return [operation.key]
      case 'inspect':
        return this.#space.state.keys(operation.prefix)
      default:
        return []
    }
  }

  #keysOfWaiting(requests: readonly LockRequest[]): readonly string[] {
    const waiting = requests.filter(({ id }) => this.#space.state.request(id)?.phase === 'waiting')
    return [...new Set(waiting.flatMap(({ claims }) => claims.map(({ key }) => key)))]
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

/** The spaces by name. They live as long as the thread, because another box may open the same name later. */
const spaces = new Map<string, MemorySpace>()

/**
 * Returns the engine of a `memory:` URL. The text after the colon is the name of a space that several boxes share.
 * @throws InvalidArgumentError if the URL has parameters
 */
export function openMemory(url: string): MemoryEngine {
  const name = url.slice('memory:'.length)
  if (name.includes('?')) {
    throw new InvalidArgumentError(
      `a memory: URL must not have parameters, or "?" in its name: ${shown(url)}`,
    )
  }
  let space = spaces.get(name)
  if (!space) {
    space = new MemorySpace(systemClock)
    if (name !== '') spaces.set(name, space)
  }
  return new MemoryEngine(url, space, systemClock)
}
