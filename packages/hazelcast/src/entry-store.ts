import type { HazelcastJsonValue, IMap } from 'hazelcast-client'
import type { Clock } from 'signalbox/engine'
import { answered } from './call.js'
import { DamagedEntryError } from './failures.js'
import type { Package } from './link.js'

/**
 * The entries of keys, as texts. Each method throws errors of the client, and DamagedEntryError for other objects.
 */
export interface EntryStore {
  get(key: string): Promise<string | undefined>
  /** Adds an entry if there is none. Otherwise returns the one that is there. */
  add(key: string, text: string): Promise<string | undefined>
  /** Replaces an entry if it is still `before`. Returns whether it was replaced. */
  replace(key: string, before: string, after: string): Promise<boolean>
  /** Deletes an entry if it is still `before`. */
  remove(key: string, before: string): Promise<void>
}

/** Entries that the members drop after a while. Each method throws errors of the client. */
export interface SignStore {
  /** @param ttl in milliseconds. */
  put(key: string, text: string, ttl: number): Promise<void>
  /** Returns those of these entries that exist. */
  getAll(keys: readonly string[]): Promise<ReadonlyMap<string, string>>
}

/** The entries in an IMap. */
export class MapEntries implements EntryStore {
  readonly #map: () => Promise<IMap<string, HazelcastJsonValue>>
  readonly #package: Package
  readonly #clock: Clock

  constructor(map: () => Promise<IMap<string, HazelcastJsonValue>>, hazelcast: Package, clock: Clock) {
    this.#map = map
    this.#package = hazelcast
    this.#clock = clock
  }

  get(key: string): Promise<string | undefined> {
    return this.#text(key, map => map.get(key))
  }

  add(key: string, text: string): Promise<string | undefined> {
    return this.#text(key, map => map.putIfAbsent(key, this.#json(text)))
  }

  async replace(key: string, before: string, after: string): Promise<boolean> {
    const map = await this.#map()
    return answered(map.replaceIfSame(key, this.#json(before), this.#json(after)), this.#clock)
  }

  async remove(key: string, before: string): Promise<void> {
    const map = await this.#map()
    await answered(map.remove(key, this.#json(before)), this.#clock)
  }

  /** Whether the client received an object of a class that only a Java program has. */
  isUnreadable(error: unknown): boolean {
    const { HazelcastSerializationError } = this.#package
    return (
      error instanceof HazelcastSerializationError ||
      error instanceof RangeError ||
      error instanceof TypeError
    )
  }

  async #text(
    key: string,
    call: (map: IMap<string, HazelcastJsonValue>) => Promise<HazelcastJsonValue | null>,
  ): Promise<string | undefined> {
    const map = await this.#map()
    try {
      return (await answered(call(map), this.#clock))?.toString()
    } catch (error) {
      throw this.isUnreadable(error) ? new DamagedEntryError(key, error) : error
    }
  }

  #json(text: string): HazelcastJsonValue {
    return new this.#package.HazelcastJsonValue(text)
  }
}

/** The entries in an IMap of strings. */
export class TextEntries implements EntryStore, SignStore {
  readonly #map: () => Promise<IMap<string, string>>
  readonly #clock: Clock

  constructor(map: () => Promise<IMap<string, string>>, clock: Clock) {
    this.#map = map
    this.#clock = clock
  }

  async get(key: string): Promise<string | undefined> {
    const map = await this.#map()
    return (await answered(map.get(key), this.#clock)) ?? undefined
  }

  async add(key: string, text: string): Promise<string | undefined> {
    const map = await this.#map()
    return (await answered(map.putIfAbsent(key, text), this.#clock)) ?? undefined
  }

  async replace(key: string, before: string, after: string): Promise<boolean> {
    const map = await this.#map()
    return answered(map.replaceIfSame(key, before, after), this.#clock)
  }

  async remove(key: string, before: string): Promise<void> {
    const map = await this.#map()
    await answered(map.remove(key, before), this.#clock)
  }

  async put(key: string, text: string, ttl: number): Promise<void> {
    const map = await this.#map()
    await answered(map.set(key, text, ttl), this.#clock)
  }

  async getAll(keys: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const map = await this.#map()
    return new Map(await answered(map.getAll([...keys]), this.#clock))
  }
}
