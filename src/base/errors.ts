import { withoutSecrets } from './secrets.js'

/** The code of an error: one for each error class of Signalbox. A `DamagedValueError` has that of its base class. */
export type ErrorCode =
  | 'BUSY'
  | 'TIMED_OUT'
  | 'ABORTED'
  | 'UNAVAILABLE'
  | 'INDETERMINATE'
  | 'LOST'
  | 'CONFLICT'
  | 'CLOSED'
  | 'DEADLOCK'
  | 'INVALID_ARGUMENT'

/** The keys and the engine that an error is about, and its cause. */
export interface ErrorContext {
  /** The lock or store keys; several are joined by `, `. */
  key?: string | undefined
  /** The engine as its URL names it, without passwords. */
  engine?: string | undefined
  cause?: unknown
}

/** The base class of all errors that Signalbox throws. Any other error is a bug. */
export abstract class SignalboxError extends Error {
  abstract readonly code: ErrorCode
  readonly key: string | undefined
  /** Undefined for an error that is not about an engine, such as one about an argument. */
  readonly engine: string | undefined
  /**
   * Whether a call that takes a task, such as `run`, had called the task. False: it certainly had not, so a retry does
   * nothing twice. True: it had, and the error is about the task's grant or commit, or about another task that it
   * waited for. Undefined for other errors that the task threw, and for calls that take no task.
   */
  readonly taskBegan: boolean | undefined

  static {
    // The message of an error is not enumerable, so JSON would omit it. The result of a task need not be JSON.
    const toJSON = function (this: SignalboxError): object {
      return Object.assign({ name: this.name, message: this.message }, this, { result: undefined })
    }
    Object.defineProperty(this.prototype, 'toJSON', { value: toJSON, configurable: true, writable: true })
  }

  constructor(message: string, context: ErrorContext = {}) {
    super(message, 'cause' in context ? { cause: context.cause } : undefined)
    this.name = new.target.name
    this.key = context.key
    this.engine = context.engine
  }
}

/** Another caller holds the lock or waits for it, and this caller did not want to wait. */
export class BusyError extends SignalboxError {
  readonly code = 'BUSY'
}

/** The holder of a lock that another caller waited for. */
export interface Holder {
  /** The session ID of its box. */
  readonly session: string
  readonly host: string
  readonly pid: number
  readonly label: string | undefined
  /** Milliseconds since it requested the lock. Undefined if another caller may hold the lock by now. */
  readonly age: number | undefined
}

/** The maximum wait has passed. The request is cancelled. */
export class TimedOutError extends SignalboxError {
  readonly code = 'TIMED_OUT'
  /**
   * The holder of the lock, if it is known without a further request to the engine: on memory, files, PostgreSQL and
   * Redis, and if this process holds the lock.
   */
  readonly holder: Holder | undefined

  constructor(message: string, context?: ErrorContext, holder?: Holder) {
    super(message, context)
    this.holder = holder
  }
}

/** The caller's `signal` aborted; `cause` is its reason. The request is cancelled. */
export class AbortedError extends SignalboxError {
  readonly code = 'ABORTED'
}

/** The engine can't be reached, or refuses the request. The request was certainly not applied. */
export class UnavailableError extends SignalboxError {
  readonly code = 'UNAVAILABLE'
}

/**
 * A stored value can't be read, because another program has written it or it is cut off. A retry is of no use until the
 * value is overwritten or deleted. Nothing was applied.
 *
 * ```ts
 * try {
 *   return await store.get('stock')
 * } catch (error) {
 *   if (!(error instanceof DamagedValueError)) throw error
 *   await store.put('stock', await recount())
 * }
 * ```
 */
export class DamagedValueError extends UnavailableError {
  /** The version of the damaged value, for `compareAndSet` and `delete`; undefined if it can't be read, either. */
  readonly version: number | undefined

  constructor(message: string, context?: ErrorContext, version?: number) {
    super(message, context)
    this.version = version
  }
}

/** A package that an engine needs is not installed or can't be loaded, so a retry is of no use. */
export class MissingPackageError extends UnavailableError {
  override readonly name = 'UnavailableError'
}

/** The engine did not reply: the request may have been applied. Signalbox cleans up after it in the background. */
export class IndeterminateError extends SignalboxError {
  readonly code = 'INDETERMINATE'
}

/** The grant is no longer held: its deadline passed, an operator released it by force, or its session ended. */
export class LostError extends SignalboxError {
  readonly code = 'LOST'
  /**
   * Whether the task of `run` or `lead` succeeded although its grant was lost before it ended: its effects remain.
   * Always false for a transaction, which has written nothing.
   */
  readonly taskEnded: boolean = false
  /** The result of the task, if it succeeded. */
  readonly result: unknown = undefined
}

/** The value and version of a store key. */
export interface Snapshot {
  /** Undefined for an absent key. */
  value: unknown
  /** 0 for an absent key. */
  version: number
}

/** Another writer changed a value after it was read. Nothing was written. */
export class ConflictError extends SignalboxError {
  readonly code = 'CONFLICT'
  /** The value that the caller had read. */
  readonly expected: Snapshot | undefined
  /** The current value. */
  readonly found: Snapshot | undefined

  constructor(message: string, context: ErrorContext & { expected?: Snapshot; found?: Snapshot } = {}) {
    super(message, context)
    this.expected = context.expected
    this.found = context.found
  }
}

/** The box was closed before the call, or while it waited. */
export class ClosedError extends SignalboxError {
  readonly code = 'CLOSED'
}

/** Returns the error of a call on a closed box. */
export function boxClosed(engine: string, cause?: unknown): ClosedError {
  return new ClosedError('the box was closed', { engine, ...(cause !== undefined && { cause }) })
}

/**
 * The caller would wait for a lock that it holds itself by `run`: directly, or through a cycle of exclusive and shared
 * claims of tasks under `run` of the same box. Other cycles are not detected.
 */
export class DeadlockError extends SignalboxError {
  readonly code = 'DEADLOCK'
}

/** An argument is invalid, and nothing was sent. The message names the argument, its value, and the valid values. */
export class InvalidArgumentError extends SignalboxError {
  readonly code = 'INVALID_ARGUMENT'
}

/**
 * Returns a copy of an error of the call itself that reports whether the task was called. A copy, because one error can
 * end several calls.
 */
export function withTaskBegan(error: unknown, began: boolean): unknown {
  return error instanceof SignalboxError ? copyOf(error, { taskBegan: began }) : error
}

/**
 * Returns the error that a call throws for an error of its task: the same one. But if it already reports about a task,
 * that is another task, which this one waited for. Then it returns a copy that reports about this task, with the error
 * as its `cause`, unless it is a DeadlockError.
 */
export function taskError(error: unknown): unknown {
  if (!(error instanceof SignalboxError) || error.taskBegan === undefined) return error
  // A deadlock is about all tasks around it, too.
  return copyOf(error, { taskBegan: true }, error instanceof DeadlockError ? undefined : error)
}

/** Returns the error of a call whose task succeeded after its grant was lost. */
export function lostBeforeEnd(loss: LostError, result: unknown): LostError {
  return copyOf(loss, { taskBegan: true, taskEnded: true, result })
}

/** The part of an error that reports about a task. */
interface TaskEnd {
  readonly taskBegan: boolean
  readonly taskEnded?: boolean
  readonly result?: unknown
}

/** Copies an error without calling its constructor, and changes only the copy, because the error may be frozen. */
function copyOf<E extends SignalboxError>(error: E, task: TaskEnd, cause?: unknown): E {
  const reported = error instanceof LostError ? { taskEnded: false, result: undefined, ...task } : task
  const copy = Object.defineProperties(new Error(), {
    ...Object.getOwnPropertyDescriptors(error),
    ...Object.getOwnPropertyDescriptors(reported),
    stack: hidden(error.stack),
    ...(cause !== undefined && { cause: hidden(cause) }),
  })
  return Object.setPrototypeOf(copy, Object.getPrototypeOf(error) as object) as E
}

/** A property that is not enumerable, like those that the runtime gives to errors. */
function hidden(value: unknown): PropertyDescriptor {
  return { value, writable: true, configurable: true, enumerable: false }
}

/** Formats an invalid value for a message: short, strings quoted, without passwords of URLs. Never throws. */
export function shown(value: unknown): string {
  if (typeof value === 'string') {
    // Before it is cut, because the end of a password may be in the part that is cut off.
    const text = withoutSecrets(value)
    return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text)
  }
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'symbol') return 'a symbol'
  if (typeof value === 'bigint') return `${value}n`
  if (value instanceof Promise) return 'a promise'
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  return String(value)
}
