import type { HazelcastJsonValue, IMap } from 'hazelcast-client'
import type { Clock } from '../../clock.js'
import type { Awaitable, List } from '../../engine/contract.js'
import { MAX_KEY_LENGTH } from '../../options.js'
import { answered, compareAndSet } from './call.js'
import type { Linked, Package } from './link.js'
import { decodeEntry, stampOf, type ValueEntry } from './value-entry.js'

/** How long a deleted entry stays: longer than any change is being sent. In milliseconds. */
const DELETED_FOR = 3_600_000

/** Maximum time to list keys, in milliseconds. */
const LIST_TIMEOUT = 10_000

/** Sorts after every text that can follow a prefix. With this bound, members sort only the keys with the prefix. */
const GREATEST_REST = '\uFFFF'.repeat(MAX_KEY_LENGTH)

/** Entries that were read. */
export interface ReadEntries {
  /** Undefined for keys without an entry. */
  readonly entries: ReadonlyMap<string, string | undefined>
  /** The keys whose entries another program has written, each with the reason why it can't be read. */
  readonly damaged: ReadonlyMap<string, unknown>
}

/** The entries of store keys, to which committed changes are written back. */
export class Values {
  readonly #link: () => Awaitable<Linked>
  readonly #package: Package
  readonly #clock: Clock

  constructor(link: () => Awaitable<Linked>, hazelcast: Package, clock: Clock) {
    this.#link = link
    this.#package = hazelcast
    this.#clock = clock
  }

  /** Reads entries. @throws what the client throws */
  async read(keys: readonly string[]): Promise<ReadEntries> {
    const entries = new Map<string, string | undefined>(keys.map(key => [key, undefined]))
    const damaged = new Map<string, unknown>()
    if (keys.length === 0) return { entries, damaged }
    const { values } = await this.#link()
    const onDamaged = (key: string, cause: unknown): void => {
      entries.delete(key)
      damaged.set(key, cause)
    }
    for (const [key, value] of await this.#getAll(values, [...entries.keys()], onDamaged)) {
      const text = value.toString()
      try {
        this.#dropOld(values, key, text, decodeEntry(text))
        entries.set(key, text)
      } catch (cause) {
        onDamaged(key, cause)
      }
    }
    return { entries, damaged }
  }

  /**
   * Returns the first keys of entries, in the order of their UTF-16 code units. Members examine all of their keys.
   * @throws what the client throws
   */
  async list({ prefix, after, limit }: List): Promise<string[]> {
    const { values } = await this.#link()
    const { Predicates } = this.#package
    const range = Predicates.and(
      Predicates.greaterEqual('__key', prefix),
      Predicates.greaterThan('__key', after),
      Predicates.lessEqual('__key', prefix + GREATEST_REST),
    )
    const listing = values.keySetWithPredicate(Predicates.paging(range, limit))
    return [...(await answered(listing, this.#clock, LIST_TIMEOUT))]
  }

  async #getAll(
    values: IMap<string, HazelcastJsonValue>,
    keys: readonly string[],
    onDamaged: (key: string, cause: unknown) => void,
  ): Promise<[key: string, value: HazelcastJsonValue][]> {
    try {
      return await answered(values.getAll([...keys]), this.#clock)
    } catch (error) {
      if (!this.#isUnreadable(error)) throw error
      if (keys.length > 1)
        // One of them is an object of another program, and the client does not say which.
        return (await Promise.all(keys.map(key => this.#getAll(values, [key], onDamaged)))).flat()
      onDamaged(keys[0]!, error)
      return []
    }
  }

  /** Whether the client received an object of a class that only a Java program has. */
  #isUnreadable(error: unknown): boolean {
    const { HazelcastSerializationError } = this.#package
    return (
      error instanceof HazelcastSerializationError ||
      error instanceof RangeError ||
      error instanceof TypeError
    )
  }

  /**
   * Replaces an older entry; a newer one stays.
   * @param before the entry that is probably there.
   * @throws what the client throws
   */
  async put(key: string, before: string | undefined, after: string): Promise<void> {
    const { values } = await this.#link()
    const stamp = stampOf(after)
    const { HazelcastJsonValue } = this.#package
    const value = new HazelcastJsonValue(after)
    let found = before === undefined ? undefined : new HazelcastJsonValue(before)
    // An entry that another program has written has no stamp, and is replaced.
    while (found === undefined || !(stampOf(found.toString()) >= stamp)) {
      if (await compareAndSet(values, key, found, value, this.#clock)) return
      found = (await answered(values.get(key), this.#clock)) ?? undefined
    }
  }

  /** Removes an entry that was deleted long ago and has no recorded IDs left. */
  #dropOld(
    values: IMap<string, HazelcastJsonValue>,
    key: string,
    text: string,
    { value, stamp, ids }: ValueEntry,
  ): void {
    const now = Date.now()
    if (value !== undefined || now - stamp / 1000 < DELETED_FOR || ids.some(([, until]) => until > now))
      return
    void values.remove(key, new this.#package.HazelcastJsonValue(text)).catch(() => undefined)
  }
}

/** The version of the newest of these entries. */
export function newestStamp(entries: ReadonlyMap<string, string | undefined>): number {
  let newest = 0
  for (const text of entries.values()) if (text !== undefined) newest = Math.max(newest, stampOf(text))
  return newest
}
