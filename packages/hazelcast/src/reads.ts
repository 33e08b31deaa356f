import {
  timeOfVersion,
  type ReadOutcome,
  type ReadSet,
  type RecordedId,
  type Versioned,
} from 'signalbox/engine'
import type { DeadSets } from './dead-sets.js'
import type { Decisions } from './decisions.js'
import type { Decided, KeyChange, RecordedIds } from './key-entry.js'

/** The value of a key, with all that is needed to change it. */
export interface KeyValue {
  readonly value: Versioned
  readonly stamp: number
  readonly ids: RecordedIds
}

/** Reads values. */
export class Reads {
  readonly #decisions: Decisions
  readonly #dead: DeadSets

  constructor(decisions: Decisions, dead: DeadSets) {
    this.#decisions = decisions
    this.#dead = dead
  }

  /**
   * Reads values and IDs.
   * @param set a set that has its keys. For these keys, entries that this box has seen since then are used without a
   * read.
   */
  async read({ keys, ids }: ReadSet, set?: string): Promise<ReadOutcome> {
    const found = await this.values([...keys, ...ids.map(({ key }) => key)], set)
    const now = Date.now()
    return {
      values: keys.map(key => found.get(key)!.value),
      seen: ids.map(({ key, id }: RecordedId) =>
        found.get(key)!.ids.some(([other, until]) => other === id && until > now),
      ),
    }
  }

  /** Returns the values of keys, each as of some time during this call. Rejects as `Engine.submit` does. */
  async values(keys: readonly string[], set?: string): Promise<ReadonlyMap<string, KeyValue>> {
    const all = [...new Set(keys)]
    return new Map(
      await Promise.all(
        all.map(async key => {
          const known = set === undefined ? undefined : this.#known(key, set)
          return [key, known ?? (await this.#value(key))] as const
        }),
      ),
    )
  }

  /** Returns the value in the known entry of a key, if the set has the key there; otherwise undefined. */
  #known(key: string, set: string): KeyValue | undefined {
    const entry = this.#decisions.entries.certain(key)?.entry
    if (!entry?.locks.requests.some(({ id, phase }) => id === set && phase !== 'waiting')) return undefined
    const { value, version, stamp, ids } = entry
    const isThere = value !== undefined
    return {
      value: isThere ? { value, version, changed: timeOfVersion(version) } : { value, version: 0 },
      stamp,
      ids,
    }
  }

  async #value(key: string): Promise<KeyValue> {
    for (;;) {
      const { found, pointers } = await this.#decisions.at(key, state => ({
        found: {
          value: state.values([key])[0]!,
          stamp: state.stamp,
          ids: state.ids,
        },
        pointers: state.holders(),
      }))
      if (pointers.length > 0) this.#dead.look(key)
      const homes = await Promise.all(
        pointers.map(({ id, home }) =>
          this.#decisions.at(home, state => ({
            id,
            isThere: state.part(id) !== undefined,
            change: changeOf(state.decided, id, key),
          })),
        ),
      )
      const decided = homes.find(({ change }) => change)
      if (decided?.change) {
        // Writes it now: the box that committed it may have died, and this one may be closed at once.
        await this.#dead.free(key).catch(() => undefined)
        return withChange(found, decided.change)
      }
      // A set that has left its home meanwhile may have written the key before.
      if (homes.every(({ isThere }) => isThere)) return found
      const left = new Set(homes.filter(({ isThere }) => !isThere).map(({ id }) => id))
      const again = await this.#decisions.at(key, state => state.holders())
      // Nothing applies to the key any more: its set has ended without a commit.
      if (again.some(({ id }) => left.has(id))) return found
    }
  }
}

function changeOf(all: readonly Decided[], id: string, key: string): KeyChange | undefined {
  return all.find(each => each.id === id)?.changes.find(each => each.key === key)
}

function withChange({ value, stamp, ids }: KeyValue, { write, ids: added }: KeyChange): KeyValue {
  const allIds = [...ids, ...added]
  if (!write) return { value, stamp, ids: allIds }
  const { version } = write
  const now =
    write.value === undefined
      ? { value: undefined, version: 0 }
      : { value: write.value, version, changed: timeOfVersion(version) }
  return { value: now, stamp: version, ids: allIds }
}
