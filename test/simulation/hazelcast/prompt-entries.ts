import { VirtualClock } from '../../../src/base/clock.js'
import type { Claim } from '../../../src/engine/claim.js'
import type { LockRequest } from '../../../src/engine/contract.js'
import type { AnyEffect } from '../../../src/engine/state-machine.js'
import type { EntryStore, SignStore } from '../../../packages/hazelcast/src/entry-store.js'
import { parseHazelcastUrl } from '../../../packages/hazelcast/src/hazelcast-url.js'
import type { KeyOperations } from '../../../packages/hazelcast/src/key-operations.js'
import { Sessions } from '../../../packages/hazelcast/src/sessions.js'
import { BoxEntries } from './box-entries.js'
import { searchIn } from './search.js'

const place = parseHazelcastUrl('hazelcast://127.0.0.1/dev')

/** A box on entries in memory. */
export interface PromptBox {
  readonly operations: KeyOperations
  readonly clock: VirtualClock
  /** The hints that the box has sent. */
  readonly hints: AnyEffect[]
  /** The requests that the box did not grant at once. */
  readonly blocked: string[]
}

/** Entries in memory. Their changes are applied at once, except those that are held back. */
export class PromptEntries {
  readonly texts = new Map<string, string>()
  readonly #held: (() => void)[] = []
  readonly #ofBoxes: BoxEntries
  /** The key of which this box's changes are held back. */
  holdsBack: { readonly box: string; readonly key: string } | undefined
  /** Called before a box searches keys. */
  beforeScan: () => Promise<unknown> = () => Promise.resolve()
  /** Number of reads of each entry by boxes. */
  readonly reads = new Map<string, number>()

  /** @param now returns the time of the members, in milliseconds. By default, their entries never expire. */
  constructor(now: () => number = () => 0) {
    this.#ofBoxes = new BoxEntries(now)
  }

  box(Operations: typeof KeyOperations, name: string, clock = new VirtualClock()): PromptBox {
    const locks = { tryLock: () => Promise.resolve(false), unlockOnce: () => Promise.resolve() }
    const boxes = this.#ofBoxes.map((_key, _name, apply) => Promise.resolve(apply()))
    const sessions = new Sessions(() => Promise.resolve(boxes), clock)
    sessions.join({ session: name, host: '', pid: 0, label: undefined })
    const hints: AnyEffect[] = []
    const blocked: string[] = []
    const signs: SignStore = {
      put: (key, text, ttl) => boxes.set(key, text, ttl),
      getAll: async keys => new Map(await boxes.getAll([...keys])),
    }
    const operations = new Operations({
      place,
      by: () => name,
      clock,
      keys: { store: this.#store(name, ''), locks },
      room: { store: this.#store(name, 'room '), locks },
      signs,
      scan: searchIn(this.texts, () => this.beforeScan()),
      repeat: work => work(),
      sessions,
      notify: effects => void hints.push(...effects),
      waitsFor: () => undefined,
      members: {
        standing: () => undefined,
        granting: () => undefined,
        blocked: id => void blocked.push(id),
        releasing: () => undefined,
      },
      unclear: () => undefined,
      isWithdrawn: () => false,
    })
    return { operations, clock, hints, blocked }
  }

  /** Applies the changes that were held back. */
  letGo(): void {
    this.holdsBack = undefined
    for (const apply of this.#held.splice(0)) apply()
  }

  #store(box: string, prefix: string): EntryStore {
    const call = <T>(key: string, apply: () => T): Promise<T> => {
      const { holdsBack } = this
      if (holdsBack?.box !== box || holdsBack.key !== prefix + key) return Promise.resolve(apply())
      return new Promise(resolve => this.#held.push(() => resolve(apply())))
    }
    const { reads, texts } = this
    return {
      get: key => {
        reads.set(prefix + key, (reads.get(prefix + key) ?? 0) + 1)
        return Promise.resolve(texts.get(prefix + key))
      },
      add: (key, text) =>
        call(key, () => {
          const present = texts.get(prefix + key)
          if (present === undefined) texts.set(prefix + key, text)
          return present
        }),
      replace: (key, before, after) =>
        call(key, () => {
          if (texts.get(prefix + key) !== before) return false
          texts.set(prefix + key, after)
          return true
        }),
      remove: (key, before) =>
        call(key, () => {
          if (texts.get(prefix + key) === before) texts.delete(prefix + key)
        }),
    }
  }
}

export function exclusive(...keys: string[]): Claim[] {
  return keys.map(key => ({ key, mode: 'exclusive' }))
}

export function requestOf(box: string, id: string, claims: readonly Claim[]): LockRequest {
  return { id: `${box}.${id}`, session: box, claims, label: undefined }
}

/** Resolves when no box can continue unless its clock advances. */
export async function settled(): Promise<void> {
  for (let round = 0; round < 5; round++) await new Promise(resolve => setImmediate(resolve))
}
