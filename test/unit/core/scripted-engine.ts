import { memoryGuarantees } from '../../../src/engines/memory/memory-engine.js'
import type {
  Engine,
  Listener,
  LockRequest,
  SessionInfo,
  Operation,
  OutcomeOf,
  Outcomes,
} from '../../../src/engine/contract.js'

type OperationOf<T extends Operation['type']> = Extract<Operation, { type: T }>

/** An operation that waits for its answer. */
export class Question<T extends Operation['type']> {
  constructor(
    readonly operation: OperationOf<T>,
    readonly answer: (outcome: Outcomes[T]) => void,
    readonly fail: (error: unknown) => void,
  ) {}
}

/** An engine whose answers the test gives, in any order and at any time. */
export class ScriptedEngine implements Engine {
  readonly name = 'scripted:'
  readonly guarantees = memoryGuarantees
  readonly reportsContention = false
  /** @param coversBySigns whether boxes send signs of life instead of heartbeats. */
  constructor(readonly coversBySigns = false) {}

  /** The listener of the box that uses this engine. */
  listener!: Listener
  /** All submitted operations, in order. */
  readonly asked: Operation[] = []
  readonly #open: Question<Operation['type']>[] = []
  /** Whether operations still wait to be executed. */
  congested = false

  join(_: SessionInfo, listener: Listener): void {
    this.listener = listener
  }

  submit<O extends Operation>(operation: O): Promise<OutcomeOf<O>> {
    this.asked.push(operation)
    return new Promise((resolve, reject) => {
      const answer = resolve as (outcome: Outcomes[keyof Outcomes]) => void
      this.#open.push(new Question(operation, answer, reject))
    })
  }

  withdraw(request: LockRequest): boolean {
    if (!this.congested) return false
    this.take('enqueue', request.id).answer({ state: 'busy' })
    return true
  }

  leave(): void {}

  /** The types of the operations so far, separated by spaces. */
  get words(): string {
    return this.asked.map(({ type }) => type).join(' ')
  }

  /** Takes the oldest open question of a type, or the one of that type about a request. */
  take<T extends Operation['type']>(type: T, id?: string): Question<T> {
    const index = this.#open.findIndex(
      ({ operation }) =>
        operation.type === type &&
        (id === undefined || ('request' in operation && operation.request.id === id)),
    )
    const found = this.#open.map(({ operation }) => operation.type).join(', ')
    if (index < 0) throw new Error(`no open request to ${type}; open are: ${found}`)
    return this.#open.splice(index, 1)[0] as unknown as Question<T>
  }

  /** Number of operations without an answer. */
  get open(): number {
    return this.#open.length
  }
}

/** Resolves when everything that needs no further time has run. */
export function settle(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}
