import type { SqlTransaction } from '../engine/contract.js'
import { milliseconds, type Duration } from '../base/duration.js'
import { withTaskBegan, InvalidArgumentError, taskError, shown } from '../base/errors.js'
import { checkKey, checkOptions, checkTask } from '../base/options.js'
import { checkedOptions, type AcquireTerms, type LockOptions } from '../core/lock-options.js'
import type { Transaction } from './transaction.js'

/** Reads a value for the function that names the keys of a transaction; undefined for an absent key. */
export type ReadValue = <T = unknown>(key: string) => Promise<T | undefined>
/**
 * The keys of a transaction, or a function that returns them, and may read values to find them. Its result may depend
 * only on the values that it reads: it is called again only if one of these changes before the commit.
 */
export type TransactionKeys =
  | readonly string[]
  | ((read: ReadValue) => readonly string[] | Promise<readonly string[]>)

/** The outcome of a transaction. */
export type TransactionOutcome<T> =
  /** Committed now. `attempts` is the number of attempts, see {@link TransactionOptions.attempts}. */
  | { readonly applied: true; readonly result: T; readonly token: bigint; readonly attempts: number }
  /** The same `id` was committed before. Nothing was written. */
  | { readonly applied: false }

/** A part of a transaction that happens once. */
export interface TransactionPart {
  readonly id: string
  /** The key of the transaction with which the ID is recorded. */
  readonly key: string
}

/** Options of a transaction. */
export interface TransactionOptions extends Omit<
  LockOptions,
  'reentrant' | 'renew' | 'ownRequest' | 'steal'
> {
  /**
   * Makes the transaction idempotent: the ID is recorded with the first named key, and a later transaction with the
   * same first key and ID does nothing, even if the key was deleted in the meantime. Several parts that are committed
   * together have an ID each, with a key of their own: `Transaction.committed` reports which of them were committed
   * before, alone or with other parts, and the transaction does nothing if all were.
   */
  id?: string | readonly TransactionPart[] | undefined
  /** Minimum time for which the ID is kept: a second to ten years; default one day. */
  retention?: Duration | undefined
  /**
   * Maximum number of attempts if a function names the keys, because the values that it reads may change; default 10.
   * One attempt may call it twice: before the locks are acquired, and under them.
   */
  attempts?: number | undefined
  /**
   * Makes the writes part of the caller's own transaction, on an engine that keeps its values in the same database. It
   * takes what `Grant.fence` takes. The values are written when that transaction commits, and no other caller gets the
   * keys before it ends.
   */
  in?: SqlTransaction | undefined
}

/** A transaction in a batch, until it is settled. */
export interface Member {
  readonly name: (read: ReadValue) => Promise<readonly string[]>
  /** The keys that were named last; undefined until a function has named them. */
  keys: readonly string[] | undefined
  readonly task: (transaction: Transaction) => unknown
  readonly request: AcquireTerms
  /** Its parts. The ID of one without a key is recorded with the first key. */
  readonly parts: readonly { readonly id: string; readonly key?: string }[]
  readonly retention: number
  readonly maxAttempts: number
  readonly within: SqlTransaction | undefined
  attempts: number
  /** Whether its task was called. */
  began: boolean
  settled: boolean
  /**
   * Cancels the limits on its wait. Set while its own wait and signal may end it: from the call until its task begins.
   */
  stopWaiting: (() => void) | undefined
  /** Called when it is settled. A batch whose members are all settled stops waiting for its locks. */
  onSettled: (() => void) | undefined
  resolve(outcome: TransactionOutcome<unknown>): void
  /** Called when the transaction itself fails, or the function that names its keys. */
  reject(error: unknown): void
  threw(error: unknown): void
}

/** The store keys of a member for an error, in the format of `ClaimSet.title`. */
export function titleOf({ keys }: Member, prefix: string): string | undefined {
  return keys && [...new Set(keys.map(key => prefix + key))].sort().join(', ')
}

export const DEFAULT_RETENTION = 86_400_000
const DEFAULT_ATTEMPTS = 10
const RETENTION_BOUNDS = { min: 1000, max: 10 * 365 * 86_400_000 }

/** Checks the arguments of a transaction. @throws InvalidArgumentError */
export function memberOf(
  keys: TransactionKeys,
  task: (transaction: Transaction) => unknown,
  options: TransactionOptions,
  resolve: Member['resolve'],
  reject: (error: unknown) => void,
): Member {
  checkTask('a transaction', task, 'transaction(keys, task, options)')
  checkOptions(
    options,
    ['wait', 'lease', 'signal', 'label', 'id', 'retention', 'attempts', 'in'],
    `{ wait: '5s' }`,
  )
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
    parts: id === undefined ? [] : partsOf(id),
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
    reject: error => settle(() => reject(withTaskBegan(error, member.began))),
    threw: error => settle(() => reject(taskError(error))),
  }
  return member
}

/** Returns the function that names the keys of a transaction, and checks them each time. */
function naming(keys: TransactionKeys): (read: ReadValue) => Promise<readonly string[]> {
  if (typeof keys === 'function') return async read => checkedKeys(await keys(read))
  const named = checkedKeys(keys)
  return () => Promise.resolve(named)
}

function partsOf(id: NonNullable<TransactionOptions['id']>): Member['parts'] {
  if (typeof id === 'string') {
    checkKey('id', id)
    return [{ id }]
  }
  if (!Array.isArray(id) || id.length === 0) throw invalidParts(id)
  const parts = (id as readonly unknown[]).map(part => {
    if (typeof part !== 'object' || part === null) throw invalidParts(id)
    const { id: own, key } = part as TransactionPart
    checkKey('id', own)
    checkKey('key', key)
    return { id: own, key }
  })
  if (new Set(parts.map(part => part.id)).size < parts.length) throw invalidParts(id)
  return parts
}

function invalidParts(id: unknown): InvalidArgumentError {
  return new InvalidArgumentError(
    `id must be a string, or a list of parts with different ids and their keys, not ${shown(id)}`,
  )
}

function checkedKeys(keys: readonly string[]): readonly string[] {
  const named: unknown = keys
  if (typeof named === 'string')
    throw new InvalidArgumentError(`the keys of a transaction must be a list like ['a'], not ${shown(named)}`)
  if (!Array.isArray(named) || named.length === 0) {
    throw new InvalidArgumentError(`a transaction must name at least one key, not ${shown(keys)}`)
  }
  for (const key of named as unknown[]) checkKey('key', key)
  return keys
}
