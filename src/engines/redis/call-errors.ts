import {
  IndeterminateError,
  InvalidArgumentError,
  SignalboxError,
  DamagedValueError,
  UnavailableError,
  shown,
} from '../../base/errors.js'
import type { ForceRelease, Inspect } from '../../engine/contract.js'
import { purposeText } from '../../engine/kit/purpose-text.js'
import { keysOf, type ServerOperation } from './call.js'
import { RedisReplyError } from './clients/connection.js'
import type { Names } from './names.js'
import type { OperationFailure } from './outcomes.js'
import type { Missed } from './replicas.js'

/** Error codes with which the server reports that it has not run the call at all. */
const REFUSALS: ReadonlySet<string> = new Set([
  'NOSCRIPT',
  'LOADING',
  'BUSY',
  'OOM',
  'MISCONF',
  'NOREPLICAS',
  'READONLY',
  'MASTERDOWN',
  'CLUSTERDOWN',
  'TRYAGAIN',
  'CROSSSLOT',
  'NOAUTH',
  'NOPERM',
  'DENIED',
  'WRONGPASS',
  'MOVED',
  'ASK',
])

/** Refusals without a code of their own. */
const NOT_RUN = /SCRIPT KILL|max number of clients reached/

/** The error for a command that the server's configuration renames or removes. Errors in our code begin differently. */
const UNKNOWN_COMMAND = /^ERR unknown command\b/

/** Converts errors of Redis and of our code to the errors of the contract. */
export class CallErrors {
  readonly #engine: string
  readonly #names: Names
  /** The type of held keys for errors, such as `a string`. */
  readonly #noun: string

  constructor(engine: string, names: Names, noun: string) {
    this.#engine = engine
    this.#names = names
    this.#noun = noun
  }

  /** The error of a call that failed as a whole. */
  ofCall(error: unknown): Error {
    if (error instanceof SignalboxError) return error
    const context = { engine: this.#engine, cause: error }
    if (!(error instanceof RedisReplyError))
      return new IndeterminateError(
        `${this.#engine} failed with an unexpected error: ${String(error)}`,
        context,
      )
    const { code, message } = error
    const isUnknown = UNKNOWN_COMMAND.test(message)
    const text =
      `${this.#engine} refused the call: ${message}` +
      (isUnknown
        ? '; allow the commands FCALL and FUNCTION LOAD, or EVALSHA and EVAL, which Signalbox needs'
        : '')
    const isRefusal = isUnknown || REFUSALS.has(code) || NOT_RUN.test(message)
    return new (isRefusal ? UnavailableError : IndeterminateError)(text, context)
  }

  /** The error of a call for a limiter. */
  ofLimit(error: unknown, limiter: string): unknown {
    if (!isCodeFailure(error)) return error
    // Without the length at the front, which separates name and key.
    const key = limiter.replace(/^\d+:/, '')
    // Nothing was changed, because the code reads before it writes.
    return this.#unreadable(`the limit ${key}`, this.#names.limit(limiter), key, error)
  }

  /** The error of one operation of a call. */
  refused(operation: ServerOperation, { message, unreadable }: OperationFailure): Error {
    const key = titleOf(operation)
    if (unreadable !== undefined) {
      const value = this.#names.keyOf('value', unreadable)
      if (value !== undefined)
        return this.#unreadable(`the value of ${value}`, unreadable, value, undefined, DamagedValueError)
      const ids = this.#names.keyOf('ids', unreadable)
      const what = ids === undefined ? 'the lock table' : `the ids recorded with ${ids}`
      return this.#unreadable(what, unreadable, ids ?? key)
    }
    return this.#refused(textOf(operation), key, new RedisReplyError(message))
  }

  /** The error of a held key that could not be read. */
  ofHeld(error: unknown, operation: Inspect | ForceRelease, key: string): unknown {
    return error instanceof RedisReplyError && error.code === 'WRONGTYPE'
      ? this.#refused(purposeText(operation), key, error)
      : error
  }

  /** The error of an operation that was executed, but reached too few replicas. */
  unsafe(operation: ServerOperation, { why, cause }: Missed): Error {
    const key = titleOf(operation)
    return new IndeterminateError(`${this.#engine} applied the change to ${String(key)}, but ${why}`, {
      engine: this.#engine,
      key,
      cause,
    })
  }

  /** The error of an operation that was sent twice, if its outcome may be that of the second execution. */
  twice(operation: ServerOperation): Error {
    return new IndeterminateError(
      `lost the connection to ${this.#engine}, so it is unknown whether the first attempt to ${textOf(operation)} succeeded`,
      { engine: this.#engine },
    )
  }

  /** The error for a lock whose held key would have a name that is reserved for other data. */
  taken(key: string): InvalidArgumentError {
    const text =
      `invalid lock key ${key}: Signalbox uses names like ${this.#names.held(key)} for its own data, ` +
      'so choose another key'
    return new InvalidArgumentError(text, { engine: this.#engine, key })
  }

  /** The error for an operation on Redis Cluster whose keys are in several hash slots. */
  spread(what: 'lock' | 'transaction', first: string, other: string): InvalidArgumentError {
    return new InvalidArgumentError(
      `the keys of a ${what} on Redis Cluster must be in one hash slot, not ${first} and ${other}; give them ` +
        'the same hash tag, like {orders}:1 and {orders}:2',
      { engine: this.#engine, key: other },
    )
  }

  #refused(what: string, key: string | undefined, cause: RedisReplyError): Error {
    const reason =
      cause.code === 'WRONGTYPE'
        ? `another program keeps something else than ${this.#noun} there`
        : cause.message
    return new UnavailableError(`could not ${what} on ${this.#engine}: ${reason}`, {
      engine: this.#engine,
      key,
      cause,
    })
  }

  #unreadable(
    what: string,
    name: string,
    key: string | undefined,
    cause?: unknown,
    type = UnavailableError,
  ): Error {
    return new type(`can't read ${what}: another program has written to ${name}`, {
      engine: this.#engine,
      key,
      cause,
    })
  }
}

/** Describes an operation for errors. */
function textOf(operation: ServerOperation): string {
  if (operation.type === 'take') return `release ${keysOf(operation).map(shown).join(', ')} by force`
  return operation.type === 'raise' ? 'raise the number of the next grant' : purposeText(operation)
}

/** The keys of an operation, for errors. */
function titleOf(operation: ServerOperation): string | undefined {
  const keys = new Set(keysOf(operation))
  return keys.size === 0 ? undefined : [...keys].join(', ')
}

/** Whether our code failed to read a key. */
function isCodeFailure(error: unknown): boolean {
  if (!(error instanceof RedisReplyError)) return false
  const { code, message } = error
  return (
    code === 'WRONGTYPE' ||
    (code === 'ERR' && /user_(?:function|script)/.test(message) && !/SCRIPT KILL/.test(message))
  )
}
