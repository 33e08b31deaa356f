import type { ReadOutcome, Versioned, Write } from '../engine/contract.js'
import { InvalidArgumentError } from '../errors.js'
import type { Grant } from '../core/grant.js'
import { decode, encode } from './value.js'

/** What a transaction's function works on: the values of its keys, as they are under the locks. */
export interface Transaction {
  /** The value, with what this transaction has written before; undefined for an absent key. A fresh copy each time. */
  get<T = unknown>(key: string): T | undefined
  /** Writes at the commit. */
  put(key: string, value: unknown): void
  /** Deletes at the commit; deleting an absent key is fine. */
  delete(key: string): void
  /** Whether the part with this id, one of several in the option `id`, was committed before and must be skipped. */
  committed(id: string): boolean
  /** The fencing token under which the commit will be made. */
  readonly token: bigint
  /** Aborts when the locks are lost; the commit would be rejected. */
  readonly signal: AbortSignal
  /** @throws LostError when the locks are lost, and the commit would be rejected. */
  assertHeld(): void
}

/** The values that a batch of transactions read under its locks, with what its transactions wrote since. */
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

  /** What was read, regardless of later writes. */
  read(key: string): Versioned {
    return this.#read.get(key)!
  }

  /** Whether these versions were read here and nothing was written over them since. */
  stands(versions: ReadonlyMap<string, number>): boolean {
    for (const [key, version] of versions) {
      if (this.#read.get(key)?.version !== version || this.#written.has(key)) return false
    }
    return true
  }

  /** Takes over what one transaction wrote. */
  apply(writes: ReadonlyMap<string, string | undefined>): void {
    for (const [key, value] of writes) this.#written.set(key, value)
  }

  /** All that was written, the last value of each key. */
  writes(): Write[] {
    return [...this.#written].map(([key, value]) => ({ key, value }))
  }
}

/** One transaction over an overlay: nothing it writes is seen by others until it is applied. */
export class OverlayTransaction implements Transaction {
  readonly writes = new Map<string, string | undefined>()
  readonly #overlay: Overlay
  readonly #grant: Grant
  readonly #prefix: string
  readonly #claimed: ReadonlySet<string>
  readonly #committed: ReadonlySet<string>

  /**
   * @param claimed the keys that this transaction named, without the store's prefix.
   * @param committed those of its ids that were committed before.
   */
  constructor(
    overlay: Overlay,
    grant: Grant,
    prefix: string,
    claimed: ReadonlySet<string>,
    committed: ReadonlySet<string>,
  ) {
    this.#committed = committed
    this.#overlay = overlay
    this.#grant = grant
    this.#prefix = prefix
    this.#claimed = claimed
  }

  get<T = unknown>(key: string): T | undefined {
    const full = this.#full(key)
    const text = this.writes.has(full) ? this.writes.get(full) : this.#overlay.value(full)
    return decode(full, text) as T | undefined
  }

  put(key: string, value: unknown): void {
    this.writes.set(this.#full(key), encode(key, value))
  }

  delete(key: string): void {
    this.writes.set(this.#full(key), undefined)
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

  #full(key: string): string {
    if (!this.#claimed.has(key)) {
      throw new InvalidArgumentError(
        `${key} is not a key of the transaction; its keys are ${[...this.#claimed].join(', ')}`,
        { key },
      )
    }
    return this.#prefix + key
  }
}
