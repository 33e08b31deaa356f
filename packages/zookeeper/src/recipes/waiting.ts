import type { Acl } from '../acl.js'
import { AbortedError, InvalidArgumentError, shown } from '../errors.js'
import { onAbort } from '../on-abort.js'

/** How a recipe makes its nodes. */
export interface RecipeOptions {
  /** Who may do what with them. Default: every client may do everything. */
  readonly acl?: readonly Acl[]
}

/** How long a recipe waits. */
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

/** What happens with work whose caller has given up waiting. */
interface Behind<T> {
  /** Takes back the outcome of the work. */
  readonly undo?: (late: T) => Promise<unknown>
  /** Is told when all of that is over. The promise never rejects. */
  readonly left?: (over: Promise<unknown>) => void
}

/**
 * Works until a signal aborts: then it settles at once, even while no server is connected.
 * @throws AbortedError
 */
export async function untilAborted<T>(
  signal: AbortSignal | undefined,
  path: string,
  work: () => Promise<T>,
  { undo, left }: Behind<T> = {},
): Promise<T> {
  if (!signal) return work()
  if (signal.aborted) throw abortedAt(path, signal)
  return new Promise((resolve, reject) => {
    const working = work()
    const forget = onAbort(signal, () => {
      const over = working.then(undo).catch(() => undefined)
      left?.(over)
      reject(abortedAt(path, signal))
    })
    const settled =
      <A>(settle: (outcome: A) => void) =>
      (outcome: A): void => {
        // This comes first: an outcome that was handed out is not taken back any more.
        forget()
        settle(outcome)
      }
    working.then(settled(resolve), settled(reject))
  })
}

/** What a wait ends with when its signal aborts. */
export function abortedAt(path: string, signal: AbortSignal): AbortedError {
  return new AbortedError(`waiting at ${path} was aborted`, { path, cause: signal.reason })
}
