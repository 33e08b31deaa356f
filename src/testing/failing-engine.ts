import type {
  Awaitable,
  Commit,
  CommitOutcome,
  Engine,
  Granted,
  Listener,
  Operation,
  OutcomeOf,
  SessionInfo,
  SqlTransaction,
} from '../engine/contract.js'
import { IndeterminateError, InvalidArgumentError, shown, UnavailableError } from '../base/errors.js'
import type { Guarantees } from '../base/guarantees.js'
import { checkOptions } from '../base/options.js'
import type { OpenTransactions } from './open-transactions.js'

/**
 * The fault of an operation:
 * - `unreachable`: it is not applied, and its caller gets an UnavailableError;
 * - `requestLost`: it is not applied, and its caller gets an IndeterminateError;
 * - `replyLost`: it is applied, and its caller gets an IndeterminateError.
 */
export type Fault = (typeof FAULTS)[number]

const FAULTS = ['unreachable', 'requestLost', 'replyLost'] as const

/**
 * An operation of a box. `reservePermits` reserves permits of a limiter, and `fence` binds a grant to a transaction;
 * the others are those of the engine contract.
 */
export type FailingOperation = Operation['type'] | 'reservePermits' | 'fence'

const OPERATIONS: Readonly<Record<FailingOperation, true>> = {
  enqueue: true,
  checkIn: true,
  alive: true,
  cancel: true,
  renew: true,
  release: true,
  extendOrYield: true,
  downgrade: true,
  forceRelease: true,
  revoke: true,
  sweepExpired: true,
  inspect: true,
  read: true,
  list: true,
  commit: true,
  watch: true,
  unwatch: true,
  reservePermits: true,
  fence: true,
}

/** Selects the operations that fail. */
export interface FailOptions {
  /**
   * The operations that fail, for example `['renew']`. Default: all. If `times` is not given, either, the box also gets
   * no messages from the engine, as without a connection.
   */
  operations?: readonly FailingOperation[] | undefined
  /** Maximum number of operations that fail. Default: all until `restore`. */
  times?: number | undefined
}

interface Failure {
  readonly fault: Fault
  readonly operations: readonly FailingOperation[] | undefined
  left: number
}

/**
 * Puts an engine in this thread behind a connection that fails on purpose. Otherwise its answers come at once, and a
 * box treats it like an engine on a server.
 */
export class FailingEngine implements Engine {
  readonly name: string
  readonly guarantees: Guarantees
  readonly reportsContention = false
  readonly canSteal: boolean
  readonly coversBySigns: boolean
  readonly reservePermits: NonNullable<Engine['reservePermits']>
  readonly limiters: NonNullable<Engine['limiters']>
  readonly #engine: Engine
  readonly #transactions: OpenTransactions
  readonly #onLeave: () => void
  #listener: Listener | undefined
  #failure: Failure | undefined
  /** Whether an operation has failed, and none has succeeded since. */
  #hasFailed = false

  /** @param transactions the open transactions on the engine's memory. */
  constructor(engine: Engine, transactions: OpenTransactions, onLeave: () => void) {
    this.#engine = engine
    this.#transactions = transactions
    this.#onLeave = onLeave
    this.name = engine.name
    this.guarantees = engine.guarantees
    this.canSteal = engine.canSteal ?? false
    this.coversBySigns = engine.coversBySigns ?? false
    this.reservePermits = request => this.#execute('reservePermits', () => engine.reservePermits!(request))
    this.limiters = isMeant => this.#execute('inspect', () => engine.limiters!(isMeant))
  }

  join(member: SessionInfo, listener: Listener): Awaitable<void> {
    this.#listener = listener
    const passOn = (hint: () => void): void => {
      if (!this.#isCutOff) hint()
    }
    return this.#engine.join(member, {
      wake: id => passOn(() => listener.wake(id)),
      lost: (id, cause) => passOn(() => listener.lost(id, cause)),
      contended: id => passOn(() => listener.contended(id)),
      reserved: key => passOn(() => listener.reserved(key)),
      changed: key => passOn(() => listener.changed(key)),
      missed: () => passOn(() => listener.missed()),
      ended: cause => listener.ended(cause),
    })
  }

  submit<O extends Operation>(operation: O): Awaitable<OutcomeOf<O>>
  submit(operation: Operation): Awaitable<OutcomeOf<Operation>> {
    return this.#execute(operation.type, () => {
      if (operation.type === 'commit' && this.#transactions.isLocked(operation))
        return this.#transactions.unlocked(operation).then(() => this.#engine.submit(operation))
      if (operation.type === 'inspect') return this.#transactions.inspect(operation)
      const outcome = this.#engine.submit(operation) as OutcomeOf<Operation>
      if (
        typeof outcome === 'object' &&
        'state' in outcome &&
        outcome.state === 'queued' &&
        'request' in operation
      )
        return this.#transactions.withHolder(operation.request, outcome)
      const isUncontended = typeof outcome === 'object' && 'isUncontended' in outcome
      return isUncontended ? { ...outcome, isUncontended: false } : outcome
    })
  }

  async fence(guard: Granted, transaction: SqlTransaction): Promise<boolean> {
    const failure = this.#nextFailure('fence')
    const check: Commit = {
      type: 'commit',
      guard,
      expect: [],
      writes: [],
      record: [],
      retention: 0,
      release: false,
    }
    const { state } = await this.#transactions.commitWithin(check, transaction, failure)
    return state !== 'lost'
  }

  commitWithin(commit: Commit, transaction: SqlTransaction): Promise<CommitOutcome> {
    return this.#transactions.commitWithin(commit, transaction, this.#nextFailure('commit'))
  }

  async leave(): Promise<void> {
    await this.#engine.leave()
    this.#onLeave()
  }

  fail(fault: Fault, options: FailOptions = {}): void {
    if (!FAULTS.includes(fault))
      throw new InvalidArgumentError(`fault must be one of ${FAULTS.join(', ')}, not ${shown(fault)}`)
    checkOptions(options, ['operations', 'times'])
    const { operations, times = Infinity } = options
    const areKnown = (names: unknown): boolean =>
      Array.isArray(names) &&
      names.length > 0 &&
      names.every(name => Object.hasOwn(OPERATIONS, name as string))
    if (operations !== undefined && !areKnown(operations)) {
      const known = Object.keys(OPERATIONS).join(', ')
      const given = Array.isArray(operations) ? `[${operations.map(shown).join(', ')}]` : shown(operations)
      throw new InvalidArgumentError(`operations must be a list with some of ${known}, not ${given}`)
    }
    if (times !== Infinity && !(Number.isInteger(times) && times > 0))
      throw new InvalidArgumentError(`times must be a positive integer, not ${shown(times)}`)
    this.restore()
    this.#failure = { fault, operations, left: times }
  }

  restore(): void {
    const wasCutOff = this.#isCutOff
    this.#failure = undefined
    if (wasCutOff) this.#listener?.missed()
  }

  /** Whether the box gets no messages from the engine. */
  get #isCutOff(): boolean {
    return this.#failure !== undefined && !this.#failure.operations && this.#failure.left === Infinity
  }

  #execute<T>(type: FailingOperation, execute: () => Awaitable<T>): Awaitable<T> {
    const fault = this.#nextFault(type)
    if (!fault) {
      if (!this.#hasFailed) return execute()
      this.#hasFailed = false
      // A promise, because the box notes only an answer that it waits for.
      return Promise.resolve(execute())
    }
    this.#hasFailed = true
    if (fault === 'replyLost') Promise.resolve(execute()).catch(() => undefined)
    return Promise.reject(this.#errorOf(fault))
  }

  #nextFault(type: FailingOperation): Fault | undefined {
    const failure = this.#failure
    if (!failure || failure.operations?.includes(type) === false) return undefined
    if (--failure.left <= 0) this.#failure = undefined
    return failure.fault
  }

  /**
   * Returns the reason why the next statement in a transaction of the test fails; undefined if it succeeds. A failure
   * aborts the transaction, regardless of the fault.
   */
  #nextFailure(type: FailingOperation): string | undefined {
    const fault = this.#nextFault(type)
    return fault && reasonOf(fault)
  }

  #errorOf(fault: Fault): Error {
    const context = { engine: this.name }
    const why = reasonOf(fault)
    return fault === 'unreachable'
      ? new UnavailableError(`can't reach ${this.name}: ${why}`, context)
      : new IndeterminateError(`lost the connection to ${this.name} before the reply: ${why}`, context)
  }
}

function reasonOf(fault: Fault): string {
  return `the test called fail('${fault}')`
}
