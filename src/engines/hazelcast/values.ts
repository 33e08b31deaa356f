import type { HazelcastJsonValue, IMap } from 'hazelcast-client'
import type { Clock } from '../../clock.js'
import { answered } from './call.js'
import type { Linked, Package } from './link.js'
import { decodeEntry } from './value-entry.js'

/** How long a deleted entry stays: longer than any change is on its way. Milliseconds. */
const DELETED_FOR = 3_600_000
const RETRY_PAUSE = 500

/** The entries of store keys: what was committed to the table's record is carried over to them. */
export class Values {
  readonly #link: () => Promise<Linked>
  readonly #package: Package
  readonly #clock: Clock
  readonly #isOver: () => boolean
  /** By key: the stamp of what is being carried over. */
  readonly #underWay = new Map<string, number>()

  constructor(link: () => Promise<Linked>, hazelcast: Package, clock: Clock, isOver: () => boolean) {
    this.#link = link
    this.#package = hazelcast
    this.#clock = clock
    this.#isOver = isOver
  }

  /** The entries as they are, undefined for those that are not there. @throws what the client throws */
  async read(keys: readonly string[]): Promise<Map<string, string | undefined>> {
    const found = new Map<string, string | undefined>(keys.map(key => [key, undefined]))
    if (keys.length === 0) return found
    const { values } = await this.#link()
    for (const [key, value] of await answered(values.getAll([...found.keys()]), this.#clock)) {
      const text = value.toString()
      found.set(key, text)
      this.#dropOld(values, key, text)
    }
    return found
  }

  /**
   * Carries changes over to the entries, each only over an older one, and tells of each that is there. What fails is tried
   * again as long as the box is open: until then whoever reads finds it in the table's record.
   */
  carryOver(
    pending: Readonly<Record<string, string>>,
    before: ReadonlyMap<string, string | undefined>,
    done: (key: string, stamp: number) => void,
  ): void {
    for (const [key, text] of Object.entries(pending)) {
      const { stamp } = decodeEntry(text)
      if ((this.#underWay.get(key) ?? 0) >= stamp) continue
      this.#underWay.set(key, stamp)
      void this.#carryOne(key, text, stamp, before.get(key)).then(isDone => {
        if (this.#underWay.get(key) === stamp) this.#underWay.delete(key)
        if (isDone) done(key, stamp)
      })
    }
  }

  async #carryOne(key: string, text: string, stamp: number, before: string | undefined): Promise<boolean> {
    let found = before
    while (!this.#isOver()) {
      try {
        const { values } = await this.#link()
        if (found !== undefined && decodeEntry(found).stamp >= stamp) return true
        if (await this.#replace(values, key, found, text)) return true
        found = (await answered(values.get(key), this.#clock))?.toString()
      } catch {
        await new Promise<void>(resolve => void this.#clock.after(RETRY_PAUSE, resolve, false))
      }
    }
    return false
  }

  async #replace(
    values: IMap<string, HazelcastJsonValue>,
    key: string,
    before: string | undefined,
    after: string,
  ): Promise<boolean> {
    const { HazelcastJsonValue: Json } = this.#package
    const value = new Json(after)
    if (before === undefined) return (await answered(values.putIfAbsent(key, value), this.#clock)) === null
    return answered(values.replaceIfSame(key, new Json(before), value), this.#clock)
  }

  /** What was deleted long ago and has nothing to remember goes for good. */
  #dropOld(values: IMap<string, HazelcastJsonValue>, key: string, text: string): void {
    const { value, stamp, ids } = decodeEntry(text)
    const now = Date.now()
    if (value !== undefined || now - stamp / 1000 < DELETED_FOR || ids.some(([, until]) => until > now))
      return
    void values.remove(key, new this.#package.HazelcastJsonValue(text)).catch(() => undefined)
  }
}

/** The version of the newest of these entries. */
export function newestStamp(entries: ReadonlyMap<string, string | undefined>): number {
  let newest = 0
  for (const text of entries.values())
    if (text !== undefined) newest = Math.max(newest, decodeEntry(text).stamp)
  return newest
}
