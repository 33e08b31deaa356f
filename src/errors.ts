import { withoutSecrets } from './secrets.js'

/** What a caller can switch on: one code for each error class of Signalbox. */
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

/** Where an error happened: the keys it is about, the engine that was asked, and the error beneath. */
export interface ErrorContext {
  /** The lock or store keys concerned; several are joined by `, `. */
  key?: string | undefined
  /** The engine as its URL names it, without passwords. */
  engine?: string | undefined
  cause?: unknown
}

/** The base of every error that Signalbox throws on purpose. Anything else that escapes is a defect. */
export abstract class SignalboxError extends Error {
  abstract readonly code: ErrorCode
  readonly key: string | undefined
  /** Undefined where an error is not about an engine, as one about an argument. */
  readonly engine: string | undefined
  /**
   * Whether a call that takes a task, such as `run`, had called it. False: it certainly had not, and trying again does
   * nothing twice. True: the task was called, and the error is about its grant or its commit, or about another task
   * that it waited for. Undefined for every other error that the task threw, and for calls that take no task.
   */
  readonly taskBegan: boolean | undefined

  constructor(message: string, context: ErrorContext = {}) {
    super(message, 'cause' in context ? { cause: context.cause } : undefined)
    this.name = new.target.name
    this.key = context.key
    this.engine = context.engine
  }
}

/** Another caller holds it, and this caller did not want to wait. */
export class BusyError extends SignalboxError {
  readonly code = 'BUSY'
}

/** A holder that has kept a caller waiting. */
export interface Holder {
  /** The id of its box. */
  readonly session: string
  readonly host: string
  readonly pid: number
  readonly label: string | undefined
  /** Milliseconds since it asked for the lock. Undefined where another caller may hold the lock by now. */
  readonly age: number | undefined
}

/** The wait is over and nothing was granted; the request leaves nothing behind. */
export class TimedOutError extends SignalboxError {
  readonly code = 'TIMED_OUT'
  /**
   * The holder of a lock, where it is known without another question to the engine: over memory, files, PostgreSQL and
   * Redis, and where this process holds the lock itself.
   */
  readonly holder: Holder | undefined

  constructor(message: string, context?: ErrorContext, holder?: Holder) {
    super(message, context)
    this.holder = holder
  }
}

/** The caller's `signal` aborted; `cause` is its reason, and the request leaves nothing behind. */
export class AbortedError extends SignalboxError {
  readonly code = 'ABORTED'
}

/** The engine can't be reached or refuses to work. The request was certainly not applied. */
export class UnavailableError extends SignalboxError {
  readonly code = 'UNAVAILABLE'
}

/** What an engine needs is not installed. Trying again is of no use. */
export class MissingPackageError extends UnavailableError {
  override readonly name = 'UnavailableError'
}

/** The engine was asked and its answer never came: the request may have been applied. Remnants are being cleaned up. */
export class IndeterminateError extends SignalboxError {
  readonly code = 'INDETERMINATE'
}

/** The grant is not held any more: its deadline passed, it was released by force, or its session ended. */
export class LostError extends SignalboxError {
  readonly code = 'LOST'
  /**
   * Whether the task of `run` or `lead` ended well although its grant was lost before: what it did is done. Never true
   * of a transaction, which has written nothing.
   */
  readonly taskEnded: boolean = false
  /** What the task returned, if it ended. */
  readonly result: unknown = undefined
}

/** One state of a store key. */
export interface Snapshot {
  /** Undefined for an absent key. */
  value: unknown
  /** 0 for an absent key. */
  version: number
}

/** A value is not the one that was read: another writer changed it in between. Nothing was written. */
export class ConflictError extends SignalboxError {
  readonly code = 'CONFLICT'
  /** What the caller had read. */
  readonly expected: Snapshot | undefined
  /** What is there. */
  readonly found: Snapshot | undefined

  constructor(message: string, context: ErrorContext & { expected?: Snapshot; found?: Snapshot } = {}) {
    super(message, context)
    this.expected = context.expected
    this.found = context.found
  }
}

/** The box was closed, before the call or while it waited. */
export class ClosedError extends SignalboxError {
  readonly code = 'CLOSED'
}

/**
 * The caller would wait for something that it holds itself by `run`: directly, or round a circle of exclusive and
 * shared claims of tasks under `run` of the same box. Other circles are not found.
 */
export class DeadlockError extends SignalboxError {
  readonly code = 'DEADLOCK'
}

/** An argument was refused before anything was sent; the message names it, what it got and what it takes. */
export class InvalidArgumentError extends SignalboxError {
  readonly code = 'INVALID_ARGUMENT'
}

/**
 * What a call that takes a task throws for an error of its own. A copy, because one error can end several calls.
 * @param began whether the task was called.
 */
export function aboutTask(error: unknown, began: boolean): unknown {
  return error instanceof SignalboxError ? copyOf(error, { taskBegan: began }) : error
}

/**
 * What a call throws for an error of its task: that error itself. An error that already reports a task reports another
 * one, which this task waited for. So a copy says the outcome of this task, and has the error as its `cause`.
 */
export function ofTask(error: unknown): unknown {
  if (!(error instanceof SignalboxError) || error.taskBegan === undefined) return error
  return copyOf(error, { taskBegan: true }, error)
}

/** What a call throws whose task ended well after its grant was lost. */
export function lostBeforeEnd(loss: LostError, result: unknown): LostError {
  return copyOf(loss, { taskBegan: true, taskEnded: true, result })
}

/** What an error reports about a task. */
interface TaskEnd {
  readonly taskBegan: boolean
  readonly taskEnded?: boolean
  readonly result?: unknown
}

/**
 * A copy of the same class, independent of its constructor. It is changed while it is made, because the error may be
 * frozen.
 */
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

/** A property as the runtime gives errors theirs. */
function hidden(value: unknown): PropertyDescriptor {
  return { value, writable: true, configurable: true, enumerable: false }
}

/** Renders a refused value for a message: short, quoted where it is text, without passwords of URLs, never throwing. */
export function shown(value: unknown): string {
  if (typeof value === 'string') {
    // Before it is cut, because what is cut off may show where a password ends.
    const text = withoutSecrets(value)
    return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text)
  }
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'symbol') return 'a symbol'
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  return String(value)
}
