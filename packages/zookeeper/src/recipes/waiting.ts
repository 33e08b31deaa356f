import type { Acl } from '../acl.js'
import { AbortedError, InvalidArgumentError, shown } from '../errors.js'
import { onAbort } from '../on-abort.js'

/** Options of the nodes that a recipe creates. */
export interface RecipeOptions {
  /** The ACL of these nodes. Default: all permissions for every client. */
  readonly acl?: readonly Acl[]
}

/** Options of a wait. */
export interface WaitOptions {
  /** Ends the wait, which then leaves nothing behind. */
  readonly signal?: AbortSignal
}

/** @throws InvalidArgumentError if the options or the signal are invalid */
export function signalOf(options: WaitOptions): AbortSignal | undefined {
  if (typeof options !== 'object' || options === null)
    throw new InvalidArgumentError(`options must be an object, not ${shown(options)}`)
  const unknown = Object.keys(options).find(name => name !== 'signal')
  if (unknown !== undefined)
    throw new InvalidArgumentError(`unknown option ${shown(unknown)}; it must be signal`)
  const { signal } = options
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw new InvalidArgumentError(`signal must be an AbortSignal, not ${shown(signal)}`)
  return signal
}

/** The cleanup of work whose caller has stopped waiting. */
interface Cleanup<T> {
  /** Reverts the outcome of the work. */
  readonly undo?: (late: T) => Promise<unknown>
  /** Called with a promise that resolves when the cleanup is done. It never rejects. */
  readonly onDone?: (done: Promise<unknown>) => void
}

/**
 * Works until a signal aborts. Then it rejects at once, even while no server is connected.
 * @throws AbortedError
 */
export async function untilAborted<T>(
  signal: AbortSignal | undefined,
  path: string,
  work: () => Promise<T>,
  { undo, onDone }: Cleanup<T> = {},
): Promise<T> {
  if (!signal) return work()
  if (signal.aborted) throw abortedAt(path, signal)
  return new Promise((resolve, reject) => {
    const working = work()
    const forget = onAbort(signal, () => {
      const done = working.then(undo).catch(() => undefined)
      onDone?.(done)
      reject(abortedAt(path, signal))
    })
    const settled =
      <A>(settle: (outcome: A) => void) =>
      (outcome: A): void => {
        // First of all, because an outcome that was returned must not be reverted.
        forget()
        settle(outcome)
      }
    working.then(settled(resolve), settled(reject))
  })
}

/** Returns the error of a wait whose signal has aborted. */
export function abortedAt(path: string, signal: AbortSignal): AbortedError {
  return new AbortedError(`waiting at ${path} was aborted`, { path, cause: signal.reason })
}
