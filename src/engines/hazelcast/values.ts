import type { HazelcastJsonValue, IMap } from 'hazelcast-client'
import type { Clock } from '../../clock.js'
import { answered } from './call.js'
import type { Linked, Package } from './link.js'
import { decodeEntry, stampOf, type ValueEntry } from './value-entry.js'

/** How long a deleted entry stays: longer than any change is on its way. Milliseconds. */
const DELETED_FOR = 3_600_000
const RETRY_PAUSE = 500

/** A change that is being carried over. */
interface UnderWay {
  text: string
  /** A newer one that came meanwhile. */
  next: string | undefined
}

/** Entries as they were read. */
interface Found {
  /** Undefined for those that are not there. */
  readonly entries: ReadonlyMap<string, string | undefined>
  /** The keys where another program has put something else, with what is wrong with it. */
  readonly spoiled: ReadonlyMap<string, unknown>
}

/** Another program has put something else in the place of the entry of a key. */
export class SpoiledError extends Error {
  readonly key: string

  constructor(key: string, cause: unknown) {
    super('what stands in the place of a value can not be read', { cause })
    this.key = key
  }
}

/** The entries of store keys: what was committed to the table's record is carried over to them. */
export class Values {
  readonly #link: () => Promise<Linked>
  readonly #package: Package
  readonly #clock: Clock
  readonly #isPending: (key: string, text: string) => Promise<boolean>
  readonly #isOver: () => boolean
  readonly #underWay = new Map<string, UnderWay>()
  readonly #carrying = new Set<Promise<void>>()

  /** @param isPending asks whether the table's record still has this change, which no box has carried over then. */
  constructor(
    link: () => Promise<Linked>,
    hazelcast: Package,
    clock: Clock,
    isPending: (key: string, text: string) => Promise<boolean>,
    isOver: () => boolean,
  ) {
    this.#link = link
    this.#package = hazelcast
    this.#clock = clock
    this.#isPending = isPending
    this.#isOver = isOver
  }

  /** The entries as they are. @throws what the client throws */
  async read(keys: readonly string[]): Promise<Found> {
    const entries = new Map<string, string | undefined>(keys.map(key => [key, undefined]))
    const spoiled = new Map<string, unknown>()
    if (keys.length === 0) return { entries, spoiled }
    const { values } = await this.#link()
    const isSpoiled = (key: string, cause: unknown): void => {
      entries.delete(key)
      spoiled.set(key, cause)
    }
    for (const [key, value] of await this.#getAll(values, [...entries.keys()], isSpoiled)) {
      const text = value.toString()
      try {
        this.#dropOld(values, key, text, decodeEntry(text))
        entries.set(key, text)
      } catch (cause) {
        isSpoiled(key, cause)
      }
    }
    return { entries, spoiled }
  }

  async #getAll(
    values: IMap<string, HazelcastJsonValue>,
    keys: readonly string[],
    isSpoiled: (key: string, cause: unknown) => void,
  ): Promise<[key: string, value: HazelcastJsonValue][]> {
    try {
      return await answered(values.getAll([...keys]), this.#clock)
    } catch (error) {
      if (!this.#isUnreadable(error)) throw error
      if (keys.length > 1)
        // An object of another program is among them, and the client does not say which it is.
        return (await Promise.all(keys.map(key => this.#getAll(values, [key], isSpoiled)))).flat()
      isSpoiled(keys[0]!, error)
      return []
    }
  }

  /** Whether the client got an object that it does not know how to read: of a class, or from a factory, of a Java program. */
  #isUnreadable(error: unknown): boolean {
    const { HazelcastSerializationError } = this.#package
    return (
      error instanceof HazelcastSerializationError ||
      error instanceof RangeError ||
      error instanceof TypeError
    )
  }

  /**
   * Carries changes over to the entries, each only over an older one, and tells of each that is there. What fails is tried
   * again as long as the box is open: until then whoever reads finds it in the table's record.
   * @param before what the entry of a key is likely to be until then.
   */
  carryOver(
    changes: readonly (readonly [key: string, text: string])[],
    before: (key: string) => string | undefined,
    done: (key: string, stamp: number) => void,
  ): void {
    for (const [key, text] of changes) {
      const underWay = this.#underWay.get(key)
      if (!underWay) {
        const carrying = this.#carry(key, text, before(key), done)
        this.#carrying.add(carrying)
        void carrying.then(() => this.#carrying.delete(carrying))
      } else if (stampOf(text) > stampOf(underWay.next ?? underWay.text)) underWay.next = text
    }
  }

  /** Settles when all is carried over: programs that read the entries alone would else miss it until a box sees to it. */
  async allCarriedOver(): Promise<void> {
    await Promise.all(this.#carrying)
  }

  async #carry(
    key: string,
    text: string,
    before: string | undefined,
    done: (key: string, stamp: number) => void,
  ): Promise<void> {
    const underWay: UnderWay = { text, next: undefined }
    this.#underWay.set(key, underWay)
    for (let found = before; await this.#carryOne(key, underWay.text, found);) {
      done(key, stampOf(underWay.text))
      if (underWay.next === undefined) break
      found = underWay.text
      underWay.text = underWay.next
      underWay.next = undefined
    }
    this.#underWay.delete(key)
  }

  async #carryOne(key: string, text: string, before: string | undefined): Promise<boolean> {
    const stamp = stampOf(text)
    let found = before === undefined ? null : new this.#package.HazelcastJsonValue(before)
    let hasFailed = false
    while (!this.#isOver()) {
      try {
        // Another box may have carried it over since, and what came after it may be deleted and forgotten.
        if (hasFailed && !(await this.#isPending(key, text))) return true
        const { values } = await this.#link()
        // What another program has put there has no stamp, and the change goes over it.
        if (found !== null && stampOf(found.toString()) >= stamp) return true
        if (await this.#replace(values, key, found, text)) return true
        found = await answered(values.get(key), this.#clock)
      } catch {
        hasFailed = true
        await new Promise<void>(resolve => void this.#clock.after(RETRY_PAUSE, resolve, false))
      }
    }
    return false
  }

  async #replace(
    values: IMap<string, HazelcastJsonValue>,
    key: string,
    before: HazelcastJsonValue | null,
    after: string,
  ): Promise<boolean> {
    const value = new this.#package.HazelcastJsonValue(after)
    if (before === null) return (await answered(values.putIfAbsent(key, value), this.#clock)) === null
    return answered(values.replaceIfSame(key, before, value), this.#clock)
  }

  /** What was deleted long ago and has nothing to remember goes for good. */
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
