import { AsyncResource } from 'node:async_hooks'
import type { Clock } from '../base/clock.js'
import { channels, type StoreEvent, type TransactionEvent, type WriteEvent } from '../base/diagnostics.js'
import { milliseconds, type Duration } from '../base/duration.js'
import type { CommitOutcome } from '../engine/contract.js'
import { withTaskBegan, AbortedError, InvalidArgumentError, shown } from '../base/errors.js'
import { checkKey, checkOptions, MAX_KEY_LENGTH } from '../base/options.js'
import { printedAs } from '../base/printed.js'
import { needsReceiver } from '../base/receiver.js'
import type { Session } from '../core/session.js'
import { EngineValues } from './engine-values.js'
import { follow, type Found } from './follow.js'
import { checkList, list, type ListedEntry, type ListOptions } from './list.js'
import {
  DEFAULT_RETENTION,
  memberOf,
  titleOf,
  type Member,
  type TransactionKeys,
  type TransactionOptions,
  type TransactionOutcome,
} from './member.js'
import { RecordValues } from './records/record-values.js'
import type { Records } from './records/records.js'
import type { Transaction } from './transaction.js'
import { TransactionQueue, type GroupOptions } from './transaction-queue.js'
import { decode, encode, type StoreEntry } from './value.js'
import type { Values } from './values.js'

/** Options of a store in this process. Other processes may use different ones. */
export interface StoreOptions {
  /**
   * Lets concurrent transactions share their locks and one commit: at most `maxSize` transactions (2 to 1024), whose
   * tasks together take little longer than `maxTime`. The tasks run one after another, in call order. Each sees the
   * writes of those before it. A transaction that fails writes nothing. Default: each transaction commits on its own.
   */
  group?: { maxSize: number; maxTime: Duration } | undefined
  /**
   * Keeps the values in records of the caller's store instead of the engine, which then has only the locks; see
   * `signalbox/store` for adapters. All processes that use the store must take their locks from the same engine.
   */
  records?: Records | undefined
}

const GROUP_TIME_BOUNDS = { min: 1, max: 1000 }
const MAX_GROUP_SIZE = 1024

/** A store of versioned values under string keys, as JSON. */
export class Store {
  readonly #values: Values
  readonly #engine: string
  readonly #session: string
  readonly #name: string
  readonly #clock: Clock
  readonly #prefix: string
  readonly #queue: TransactionQueue
  readonly #isPublished: boolean

  static {
    needsReceiver(this)
    printedAs(this, 'Store', store => ({ name: store.#name, engine: store.#engine }))
  }

  /**
   * @param isPublished whether writes are published on their channel.
   * @throws InvalidArgumentError when the name or an option is invalid.
   * @internal
   */
  constructor(session: Session, name: string, options: StoreOptions = {}, isPublished = true) {
    checkKey('store', name)
    if (name.includes('/'))
      throw new InvalidArgumentError(`store must be a name without "/", not ${shown(name)}`)
    const group = groupOptions(options)
    const { records } = options
    this.#values = records === undefined ? new EngineValues(session) : recordValues(session, records)
    this.#engine = session.engine.name
    this.#session = session.id
    this.#name = name
    this.#clock = session.clock
    this.#prefix = `${name}/`
    this.#queue = new TransactionQueue(session, this.#values, this.#prefix, group)
    this.#isPublished = isPublished
  }

  /**
   * Returns the value and its version, or undefined for an absent key.
   * @throws DamagedValueError when the value can't be read; InvalidArgumentError, UnavailableError, ClosedError;
   * IndeterminateError when the engine did not reply
   */
  async get<T = unknown>(key: string): Promise<StoreEntry<T> | undefined> {
    const fullKey = this.#key(key)
    const { values } = await this.#values.read({ keys: [fullKey], ids: [] })
    const { value, version } = values[0]!
    return value === undefined ? undefined : { value: decode(fullKey, value, version) as T, version }
  }

  /**
   * Writes the value unconditionally, without a lock, and returns the new version. A transaction that has read the key
   * then fails at its commit.
   * @throws InvalidArgumentError, UnavailableError, IndeterminateError, ClosedError
   */
  async put(key: string, value: unknown): Promise<number> {
    const version = await this.#write('put', key, undefined, encode(key, value))
    return version!
  }

  /**
   * Deletes the key. With a version, deletes it only if it has that version; 0 stands for an absent key. Returns false
   * if it has another version, else true, even for an absent key.
   * @throws as `put`
   */
  async delete(key: string, version?: number): Promise<boolean> {
    if (version !== undefined) checkVersion(version)
    return (await this.#write('delete', key, version, undefined)) !== undefined
  }

  /**
   * Writes the value only if the key has this version; 0 stands for an absent key. Returns the new version, or
   * undefined if the key has another version.
   * @throws InvalidArgumentError, UnavailableError, IndeterminateError, ClosedError
   */
  async compareAndSet(key: string, version: number, value: unknown): Promise<number | undefined> {
    checkVersion(version)
    return this.#write('compareAndSet', key, version, encode(key, value))
  }

  /**
   * Acquires the locks of the keys, calls `task` with their values, and commits all of its writes or none. It commits
   * only if the locks are still held and every key has the version that was read. The lock of a key is the mutex
   * `<store>/<key>`. If a function names the keys, and a value that it has read changes before the commit, it is called
   * again, and `task` may be, too.
   * @throws ConflictError when a key was written without its lock; LostError when the locks were lost before the
   * commit; InvalidArgumentError when `task` uses a key that was not named; what `task` throws; what `acquire` of a
   * mutex throws. Nothing was written, except perhaps after an IndeterminateError. For all but the errors of `task`,
   * `taskBegan` reports whether `task` was called.
   */
  transaction<T>(
    keys: TransactionKeys,
    task: (transaction: Transaction) => T | Promise<T>,
    options: TransactionOptions = {},
  ): Promise<TransactionOutcome<T>> {
    return new Promise((resolve, reject) => {
      const publish = channels.transaction.hasSubscribers ? this.#outcomePublisher(() => member) : undefined
      const applied = (outcome: TransactionOutcome<unknown>): void => {
        publish?.(outcome)
        resolve(outcome as TransactionOutcome<T>)
      }
      const failed = (error: unknown): void => {
        publish?.(undefined, error)
        reject(error)
      }
      let member: Member
      try {
        member = memberOf(keys, task, options, applied, failed)
      } catch (error) {
        return reject(withTaskBegan(error, false))
      }
      const { signal } = member.request
      if (signal?.aborted) {
        const key = titleOf(member, this.#prefix)
        const context = { key, engine: this.#engine, cause: signal.reason as unknown }
        return member.reject(new AbortedError('the transaction was aborted', context))
      }
      this.#queue.add(member)
    })
  }

  /**
   * Yields the entries of the store, in the order of their keys: by UTF-16 code units, or by bytes of UTF-8 on files
   * and PostgreSQL. It reads them in parts. An entry that is there the whole time is yielded once; one that is written
   * or deleted meanwhile may be missing. To continue later, pass the last key as `after`.
   *
   * ```ts
   * for await (const { key, value } of store.list({ prefix: 'train ' })) console.log(key, value)
   * ```
   *
   * Most engines examine all of their keys for each call, and for each further 10,000 keys. PostgreSQL does not list
   * keys of more than 1,000 bytes.
   * @throws InvalidArgumentError also for a store with records; DamagedValueError, whose `key` is the key with its
   * store; UnavailableError; ClosedError; IndeterminateError when the engine did not reply
   */
  async *list<T = unknown>(options: ListOptions = {}): AsyncGenerator<ListedEntry<T>, void, void> {
    yield* list<T>(this.#values, this.#prefix, checkList(options))
  }

  /**
   * Yields the entry of a key now and after each change, until the loop ends or the signal aborts. Changes in quick
   * succession may be yielded as one. The engine reports a change at once. If that message is lost, the box finds the
   * change within 10 seconds, because it reads all its watched keys that often. While the engine is out of reach, the
   * watch yields nothing, and it continues afterwards. The process stays alive while the caller waits for an entry.
   * @throws InvalidArgumentError, ClosedError; UnavailableError when the first entry can't be read;
   * DamagedValueError when an entry can't be decoded
   */
  async *watch<T = unknown>(
    key: string,
    signal?: AbortSignal,
  ): AsyncGenerator<StoreEntry<T> | undefined, void, void> {
    const full = this.#key(key)
    const read = async (): Promise<Found<StoreEntry<T> | undefined>> => {
      const value = await this.get<T>(key)
      return { value, version: value?.version ?? 0 }
    }
    yield* follow(task => this.#values.watch(full, task), read, this.#clock, signal)
  }

  async #write(
    verb: WriteEvent['verb'],
    key: string,
    version: number | undefined,
    value: string | undefined,
  ): Promise<number | undefined> {
    const full = this.#key(key)
    const writing = this.#values.write({ key: full, value }, version, DEFAULT_RETENTION)
    const outcome = await (this.#isPublished && channels.write.hasSubscribers
      ? this.#published(verb, key, writing)
      : writing)
    return outcome.state === 'committed' ? outcome.versions[0]! : undefined
  }

  /** Publishes the outcome of a write. */
  async #published(
    verb: WriteEvent['verb'],
    key: string,
    writing: Promise<CommitOutcome>,
  ): Promise<CommitOutcome> {
    const since = this.#clock.now()
    const publish = (outcome: WriteEvent['outcome'], failure: object = {}): void =>
      channels.write.publish({
        ...this.#event([key], since),
        ...failure,
        verb,
        outcome,
      } satisfies WriteEvent)
    try {
      const outcome = await writing
      publish(outcome.state === 'committed' ? 'applied' : 'conflict')
      return outcome
    } catch (error) {
      publish('failed', { error })
      throw error
    }
  }

  /**
   * Returns a function that publishes the outcome of a transaction, in the async context of its caller, because another
   * caller of the batch may settle it.
   */
  #outcomePublisher(
    member: () => Member,
  ): (outcome: TransactionOutcome<unknown> | undefined, error?: unknown) => void {
    const since = this.#clock.now()
    return AsyncResource.bind((outcome: TransactionOutcome<unknown> | undefined, error?: unknown) => {
      const { keys = [], attempts } = member()
      channels.transaction.publish({
        ...this.#event(keys, since),
        ...(outcome ? { outcome: outcome.applied ? 'applied' : 'repeated' } : { outcome: 'failed', error }),
        attempts,
        ...(outcome?.applied && { token: outcome.token }),
      } satisfies TransactionEvent)
    })
  }

  #event(keys: readonly string[], since: number): StoreEvent {
    const took = this.#clock.now() - since
    return { engine: this.#engine, session: this.#session, store: this.#name, keys, took }
  }

  #key(key: string): string {
    checkKey('key', key)
    const full = this.#prefix + key
    // The lock of the key has this name, so its length is limited, too.
    if (full.length > MAX_KEY_LENGTH) checkKey('key with its store', full)
    return full
  }
}

function groupOptions(options: StoreOptions): GroupOptions | undefined {
  checkOptions(options, ['group', 'records'])
  const { group } = options
  if (group === undefined) return undefined
  if (typeof group !== 'object' || group === null) {
    throw new InvalidArgumentError(`group must be an object with maxSize and maxTime, not ${shown(group)}`)
  }
  checkOptions(group, ['maxSize', 'maxTime'])
  const { maxSize, maxTime } = group
  if (!Number.isSafeInteger(maxSize) || maxSize < 2 || maxSize > MAX_GROUP_SIZE) {
    throw new InvalidArgumentError(
      `group.maxSize must be a whole number from 2 to ${MAX_GROUP_SIZE}, not ${shown(maxSize)}`,
    )
  }
  return { maxSize, maxTime: milliseconds('group.maxTime', maxTime, GROUP_TIME_BOUNDS) }
}

function recordValues(session: Session, records: unknown): Values {
  if (typeof records !== 'object' || records === null || !isRecords(records))
    throw new InvalidArgumentError(
      `records must be an object with get and compareAndSet, not ${shown(records)}`,
    )
  return new RecordValues(session, records)
}

function isRecords(records: Partial<Records>): records is Records {
  return typeof records.get === 'function' && typeof records.compareAndSet === 'function'
}

function checkVersion(version: unknown): void {
  if (!Number.isSafeInteger(version) || (version as number) < 0) {
    throw new InvalidArgumentError(`version must be a version that was read, or 0, not ${shown(version)}`)
  }
}
