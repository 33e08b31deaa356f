import { milliseconds, type Duration } from '../duration.js'
import { aboutTask, InvalidArgumentError, ofTask, shown } from '../errors.js'
import { checkKey, checkOptions } from '../options.js'
import { checkedOptions, type AcquireRequest, type LockOptions } from '../core/lock-options.js'
import type { Transaction } from './transaction.js'

/** Reads a value while the keys of a transaction are being named; undefined for an absent key. */
export type ReadValue = <T = unknown>(key: string) => Promise<T | undefined>
/**
 * The keys of a transaction, or a function that names them, further ones from values that it reads. What it names has
 * to follow from what it reads: it is called again only when one of those values has changed before the commit.
 */
export type TransactionKeys =
  readonly string[] | ((read: ReadValue) => readonly string[] | Promise<readonly string[]>)

/** How a transaction ended. */
export type TransactionOutcome<T> =
  /** Committed now. `attempts` counts how many it took until what named its keys held still. */
  | { readonly applied: true; readonly result: T; readonly token: bigint; readonly attempts: number }
  /** The same `id` was committed before; nothing was done. */
  | { readonly applied: false }

/** Options of a transaction. */
export interface TransactionOptions extends Omit<LockOptions, 'reentrant' | 'renew'> {
  /**
   * Makes it idempotent: the id is recorded with the first key that was named, and a later transaction with the same
   * first key and id does nothing, even if the key was deleted in the meantime. Several ids stand for several parts that
   * are committed together: `Transaction.committed` says which parts were committed before, and the transaction does
   * nothing if all were.
   */
  id?: string | readonly string[] | undefined
  /** The least time for which the id is kept: a second to ten years; default one day. */
  retention?: Duration | undefined
  /**
   * How many attempts there are where keys are found by reading, because what was read may change; default 10.
   * One attempt may name its keys twice: before it takes the locks, and under them.
   */
  attempts?: number | undefined
  /**
   * Makes the writes part of a transaction of the caller's own, on an engine that keeps its values in the same
   * database: the client that has begun it, as `Grant.fence` takes it. The values are written when that transaction
   * commits, and no other caller gets the keys before it has ended.
   */
  in?: object | undefined
}

/** One transaction on its way. */
export interface Member {
  readonly name: (read: ReadValue) => Promise<readonly string[]>
  /** The keys that it named last; undefined before a function named them for the first time. */
  keys: readonly string[] | undefined
  readonly task: (transaction: Transaction) => unknown
  readonly request: AcquireRequest
  /** The ids of its parts. */
  readonly ids: readonly string[]
  readonly retention: number
  readonly maxAttempts: number
  /** The caller's transaction that it is to be part of. */
  readonly within: object | undefined
  attempts: number
  /** Whether its function has been called. */
  began: boolean
  settled: boolean
  /** Set while its own wait and signal may take it back, wherever it waits: from the call until its function begins. */
  stopWaiting: (() => void) | undefined
  /** Called when it is settled: a batch without unsettled members gives up its locks. */
  onSettled: (() => void) | undefined
  resolve(outcome: TransactionOutcome<unknown>): void
  /** It failed, by itself or by what names its keys. */
  reject(error: unknown): void
  /** Its function threw this. */
  threw(error: unknown): void
}

/** The store keys of a member for an error, as `ClaimSet.title` has them. */
export function titleOf({ keys }: Member, prefix: string): string | undefined {
  return keys && [...new Set(keys.map(key => prefix + key))].sort().join(', ')
}

export const DEFAULT_RETENTION = 86_400_000
const DEFAULT_ATTEMPTS = 10
const RETENTION_BOUNDS = { min: 1000, max: 10 * 365 * 86_400_000 }

/** @throws InvalidArgumentError that names the option, what it got and what it takes. */
export function memberOf(
  keys: TransactionKeys,
  task: (transaction: Transaction) => unknown,
  options: TransactionOptions,
  resolve: Member['resolve'],
  reject: (error: unknown) => void,
): Member {
  if (typeof task !== 'function') {
    throw new InvalidArgumentError(`the task of a transaction must be a function, not ${shown(task)}`)
  }
  checkOptions(options, ['wait', 'lease', 'signal', 'label', 'id', 'retention', 'attempts', 'in'])
  const { id, retention, attempts = DEFAULT_ATTEMPTS, in: within, ...lock } = options
  if (!Number.isSafeInteger(attempts) || attempts < 1) {
    throw new InvalidArgumentError(`attempts must be a whole number, 1 or more, not ${shown(attempts)}`)
  }
  if (
    within !== undefined &&
    (typeof within !== 'object' || (within as object | null) === null) &&
    typeof within !== 'function'
  ) {
    throw new InvalidArgumentError(`in must be a client with an open transaction, not ${shown(within)}`)
  }
  const settle = (publish: () => void): void => {
    if (member.settled) return
    member.settled = true
    member.stopWaiting?.()
    publish()
    member.onSettled?.()
  }
  const member: Member = {
    name: naming(keys),
    keys: typeof keys === 'function' ? undefined : keys,
    task,
    request: checkedOptions(lock),
    ids: id === undefined ? [] : idsOf(id),
    retention:
      retention === undefined ? DEFAULT_RETENTION : milliseconds('retention', retention, RETENTION_BOUNDS),
    maxAttempts: attempts,
    within,
    attempts: 0,
    began: false,
    settled: false,
    stopWaiting: undefined,
    onSettled: undefined,
    resolve: outcome => settle(() => resolve(outcome)),
    reject: error => settle(() => reject(aboutTask(error, member.began))),
    threw: error => settle(() => reject(ofTask(error))),
  }
  return member
}

/** The naming function of a transaction; what it names is checked each time. */
function naming(keys: TransactionKeys): (read: ReadValue) => Promise<readonly string[]> {
  if (typeof keys === 'function') return async read => checkNamed(await keys(read))
  const named = checkNamed(keys)
  return () => Promise.resolve(named)
}

function idsOf(id: NonNullable<TransactionOptions['id']>): readonly string[] {
  if (typeof id !== 'string' && (!Array.isArray(id) || id.length === 0)) throw unfitIds(id)
  const ids: readonly string[] = typeof id === 'string' ? [id] : id
  for (const one of ids) checkKey('id', one)
  if (new Set(ids).size < ids.length) throw unfitIds(id)
  return ids
}

function unfitIds(id: unknown): InvalidArgumentError {
  return new InvalidArgumentError(`id must be a string, or a list of different ids, not ${shown(id)}`)
}

function checkNamed(keys: readonly string[]): readonly string[] {
  const named: unknown = keys
  if (!Array.isArray(named) || named.length === 0) {
    throw new InvalidArgumentError(`a transaction must name at least one key, not ${shown(keys)}`)
  }
  for (const key of named as unknown[]) checkKey('key', key)
  return keys
}
