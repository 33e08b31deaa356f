import type { HazelcastJsonValue, IMap } from 'hazelcast-client'
import { MAX_KEY_LENGTH, firstKeys, type Clock, type List } from 'signalbox/engine'
import { answered } from './call.js'
import type { Package } from './link.js'

type Predicate = Parameters<IMap<string, HazelcastJsonValue>['keySetWithPredicate']>[0]

/** Maximum time to examine all keys, in milliseconds. */
const TIMEOUT = 10_000

/** The class of all entries on the members. */
export const JSON_CLASS = 'com.hazelcast.core.HazelcastJsonValue'

/** Sorts after every text that can follow a prefix. With this bound, members sort only the keys with the prefix. */
const GREATEST_REST = '\uFFFF'.repeat(MAX_KEY_LENGTH)

/** Searches the keys of entries. Members examine all of their entries. Each method throws errors of the client. */
export class Scan {
  readonly #map: () => Promise<IMap<string, HazelcastJsonValue>>
  readonly #package: Package
  readonly #clock: Clock

  constructor(map: () => Promise<IMap<string, HazelcastJsonValue>>, hazelcast: Package, clock: Clock) {
    this.#map = map
    this.#package = hazelcast
    this.#clock = clock
  }

  /** Returns the keys with this prefix that have requests or commits that are not applied. */
  async inUse(prefix: string): Promise<string[]> {
    const { Predicates } = this.#package
    const range = this.#range(prefix)
    const keys = await this.#keys(Predicates.and(range, this.#notZero(['n'])), range)
    return keys.sort()
  }

  /**
   * Returns the keys that have requests of these sessions or commits that are not applied. It may miss an entry that is
   * changed meanwhile. That is harmless, because boxes that use a key remove the requests of dead boxes themselves.
   */
  async usedBy(sessions: readonly string[]): Promise<string[]> {
    const { Predicates } = this.#package
    const hasRequest = Predicates.inPredicate('lock[3][any]', ...sessions)
    return this.#ofJson(Predicates.or(hasRequest, Predicates.greaterEqual('lock[6][0][1]', 0)))
  }

  /**
   * Returns the keys of entries that have neither a value nor requests, and that were last used at least this many
   * milliseconds ago. Also returns entries from the future, which come from a box with a wrong clock.
   */
  async unused(time: number): Promise<string[]> {
    const { Predicates } = this.#package
    const now = Date.now()
    const isRecent = (field: string) => Predicates.between(field, (now - time) * 1000, (now + time) * 1000)
    const predicate = Predicates.and(
      ...['n', 'version'].map(field => Predicates.equal(field, 0)),
      ...['stamp', 'lock[0]', 'lock[1]'].map(field => Predicates.not(isRecent(field))),
      // The oldest of its IDs. A member would take "not greater" for "less", which an entry without IDs is not, either.
      Predicates.not(Predicates.between('ids[0][1]', now, Number.MAX_SAFE_INTEGER)),
    )
    return this.#ofJson(predicate)
  }

  /** Returns the first keys of entries, in the order of their UTF-16 code units. */
  async list(list: List): Promise<string[]> {
    const { Predicates } = this.#package
    const range = Predicates.and(this.#range(list.prefix), Predicates.greaterThan('__key', list.after))
    const used = Predicates.and(range, this.#notZero(['n', 'version']))
    const keys = await this.#keys(Predicates.paging(used, list.limit), range)
    return firstKeys(keys, list)
  }

  /**
   * Returns a predicate: not all of these fields are 0. A member may find no field at all in an entry that is changed
   * meanwhile. So the predicate must not ask for greater values, or it would miss that entry.
   */
  #notZero(fields: readonly string[]) {
    const { Predicates } = this.#package
    return Predicates.not(Predicates.and(...fields.map(field => Predicates.equal(field, 0))))
  }

  #range(prefix: string) {
    const { Predicates } = this.#package
    return Predicates.and(
      Predicates.greaterEqual('__key', prefix),
      Predicates.lessEqual('__key', prefix + GREATEST_REST),
    )
  }

  #ofJson(predicate: Predicate): Promise<string[]> {
    const { Predicates } = this.#package
    return this.#keys(predicate, Predicates.and(Predicates.instanceOf(JSON_CLASS), predicate))
  }

  /** @param otherwise the predicate to use if another program has written entries that are not JSON. */
  async #keys(predicate: Predicate, otherwise: Predicate): Promise<string[]> {
    const map = await this.#map()
    try {
      return [...(await answered(map.keySetWithPredicate(predicate), this.#clock, TIMEOUT))]
    } catch {
      return [...(await answered(map.keySetWithPredicate(otherwise), this.#clock, TIMEOUT))]
    }
  }
}
