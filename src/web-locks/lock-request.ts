import { shown } from '../base/errors.js'
import { MAX_KEY_LENGTH } from '../base/options.js'

export type LockMode = 'exclusive' | 'shared'

/** Options of a request. */
export interface LockOptions {
  /** Whether other `shared` locks may be held with it; default `exclusive`. */
  mode?: LockMode | undefined
  /** Whether to call the callback with null if the lock can't be granted without waiting; default false. */
  ifAvailable?: boolean | undefined
  /** Whether to take the lock from its holders, whose promises reject, and to overtake all waiters; default false. */
  steal?: boolean | undefined
  /** Ends the wait. Once the lock is granted, it has no effect. */
  signal?: AbortSignal | undefined
}

export interface LockRequest {
  readonly name: string
  readonly mode: LockMode
  readonly ifAvailable: boolean
  readonly steal: boolean
  readonly signal: AbortSignal | undefined
  readonly callback: (lock: unknown) => unknown
}

/**
 * Converts arguments as Web IDL says, from left to right: an optional dictionary is between the name and the callback,
 * and its members are read in the order of the alphabet.
 * @throws TypeError
 */
export function converted(given: readonly unknown[]): LockRequest {
  if (given.length < 2) throw new TypeError('request needs a name and a callback')
  const name = text(given[0])
  const options = given.length === 2 ? undefined : given[1]
  const callback = given.length === 2 ? given[1] : given[2]
  if (options !== undefined && typeof options !== 'object' && typeof options !== 'function')
    throw new TypeError(`options must be an object, not ${shown(options)}`)
  const { ifAvailable, mode, signal, steal } = (options ?? {}) as Readonly<Record<string, unknown>>
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw new TypeError(`signal must be an AbortSignal, not ${shown(signal)}`)
  if (typeof callback !== 'function')
    throw new TypeError(`the callback must be a function, not ${shown(callback)}`)
  return {
    name,
    mode: modeOf(mode),
    ifAvailable: Boolean(ifAvailable),
    steal: Boolean(steal),
    signal,
    callback: callback as LockRequest['callback'],
  }
}

function modeOf(value: unknown): LockMode {
  if (value === undefined) return 'exclusive'
  const mode = text(value)
  if (mode !== 'exclusive' && mode !== 'shared')
    throw new TypeError(`mode must be 'exclusive' or 'shared', not ${shown(mode)}`)
  return mode
}

function text(value: unknown): string {
  if (typeof value === 'symbol') throw new TypeError('a symbol is not a string')
  return String(value)
}

/**
 * Rejects requests that the standard does not support: steps 5 to 9 of the method `request`.
 * @throws DOMException; the reason of a signal that has aborted
 */
export function checkSupported({ name, mode, ifAvailable, steal, signal }: LockRequest): void {
  if (name.startsWith('-')) throw notSupported("names that begin with '-' are reserved")
  if (steal && ifAvailable) throw notSupported('steal and ifAvailable exclude each other')
  if (steal && mode !== 'exclusive') throw notSupported('steal needs the mode exclusive')
  if (signal && (steal || ifAvailable)) throw notSupported('signal excludes steal and ifAvailable')
  signal?.throwIfAborted()
}

export function notSupported(message: string): DOMException {
  return new DOMException(message, 'NotSupportedError')
}

export const PREFIX = 'web-lock:'

/**
 * Characters that a name may have, but not a key: NUL and halves of surrogate pairs. Also the sign that escapes them.
 */
const UNFIT = /[%\0]|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g

/** Returns the key of the lock with this name. @throws DOMException when it would be too long */
export function keyOf(name: string): string {
  const key = PREFIX + name.replace(UNFIT, unit => `%${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  if (key.length > MAX_KEY_LENGTH)
    throw notSupported(
      `the name of a lock must fit into a key of ${MAX_KEY_LENGTH} characters, not ${key.length}`,
    )
  return key
}

export function nameOf(key: string): string {
  return key
    .slice(PREFIX.length)
    .replace(/%([\da-f]{4})/g, (_, code: string) => String.fromCharCode(parseInt(code, 16)))
}
