import type { ReadOutcome, Versioned, Write } from '../engine/contract.js'
import { InvalidArgumentError } from '../base/errors.js'
import type { Grant } from '../core/grant.js'
import { printedAs } from '../base/printed.js'
import { needsReceiver } from '../base/receiver.js'
import { decode, encode } from './value.js'

/** The values of a transaction's keys under its locks, for its task. */
export interface Transaction {
  /** Returns a copy of the value, including this transaction's own writes; undefined for an absent key. */
  get<T = unknown>(key: string): T | undefined
  /** Writes the value at the commit. */
  put(key: string, value: unknown): void
  /** Deletes the key at the commit. The key may be absent. */
  delete(key: string): void
  /** Returns whether the part with this ID, one of several in the option `id`, was committed before: skip it. */
  committed(id: string): boolean
  /** The fencing token of the locks. */
  readonly token: bigint
  /** Aborts when the locks are lost: the commit would be rejected. */
  readonly signal: AbortSignal
  /** @throws LostError when the locks are lost: the commit would be rejected. */
  assertHeld(): void
}

/** The values that a batch has read under its locks, with the writes of its transactions. */
export class Overlay {
  readonly #read = new Map<string, Versioned>()
  readonly #written = new Map<string, string | undefined>()

  /** @param keys the store keys, in the order in which they were read. */
  constructor(keys: readonly string[], outcome: ReadOutcome) {
    keys.forEach((key, index) => this.#read.set(key, outcome.values[index]!))
  }

  has(key: string): boolean {
    return this.#read.has(key)
  }

  /** JSON text; undefined for an absent key. */
  value(key: string): string | undefined {
    return this.#written.has(key) ? this.#written.get(key) : this.#read.get(key)?.value
  }

  /** The value that was read, without later writes. */
  read(key: string): Versioned {
    return this.#read.get(key)!
  }

  /** Whether these keys have these versions, and no transaction of the batch has written them. */
  hasVersions(versions: ReadonlyMap<string, number>): boolean {
    for (const [key, version] of versions) {
      if (this.#read.get(key)?.version !== version || this.#written.has(key)) return false
    }
    return true
  }

  apply(writes: ReadonlyMap<string, string | undefined>): void {
    for (const [key, value] of writes) this.#written.set(key, value)
  }

  writes(): Write[] {
    return [...this.#written].map(([key, value]) => ({ key, value }))
  }
}

/** One transaction on an overlay. Others see its writes when they are applied. */
export class OverlayTransaction implements Transaction {
  readonly writes = new Map<string, string | undefined>()
  readonly #overlay: Overlay
  readonly #grant: Grant
  readonly #keys: ReadonlyMap<string, string>
  readonly #committed: ReadonlySet<string>

  static {
    needsReceiver(this)
    printedAs(this, 'Transaction', transaction => ({
      keys: [...transaction.#keys.keys()],
      token: String(transaction.token),
    }))
  }

  /**
   * @param keys the store key of each key of this transaction.
   * @param committed its IDs that were committed before.
   */
  constructor(
    overlay: Overlay,
    grant: Grant,
    keys: ReadonlyMap<string, string>,
    committed: ReadonlySet<string>,
  ) {
    this.#overlay = overlay
    this.#grant = grant
    this.#keys = keys
    this.#committed = committed
  }

  get<T = unknown>(key: string): T | undefined {
    const full = fullKey(this.#keys, key)
    const text = this.writes.has(full) ? this.writes.get(full) : this.#overlay.value(full)
    return decode(full, text) as T | undefined
  }

  put(key: string, value: unknown): void {
    this.writes.set(fullKey(this.#keys, key), encode(key, value))
  }

  delete(key: string): void {
    this.writes.set(fullKey(this.#keys, key), undefined)
  }

  committed(id: string): boolean {
    return this.#committed.has(id)
  }

  get token(): bigint {
    return this.#grant.token
  }

  get signal(): AbortSignal {
    return this.#grant.signal
  }

  assertHeld(): void {
    this.#grant.assertHeld()
  }
}

/** Returns the store key of a key of a transaction. @param keys the store key of each. @throws InvalidArgumentError */
export function fullKey(keys: ReadonlyMap<string, string>, key: string): string {
  const full = keys.get(key)
  if (full !== undefined) return full
  throw new InvalidArgumentError(
    `${key} is not a key of the transaction; its keys are ${[...keys.keys()].join(', ')}`,
    { key },
  )
}
