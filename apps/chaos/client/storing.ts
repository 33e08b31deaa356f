import { SignalboxError, type Store } from 'signalbox'
import type { StoreCall } from '../history.js'
import { systemClock } from 'signalbox/engine'
import type { Random } from 'signalbox-conformance'
import type { Link } from './link.js'

/** Time for which clients use a key, in milliseconds. It keeps the history of each key short. */
const AGE = 1000
const KEYS = 2

type Settled = Pick<StoreCall, 'end' | 'value' | 'version'>

/** Reads and writes single values without a lock. */
export class Storing {
  readonly #who: string
  readonly #store: Store
  readonly #link: Link
  readonly #random: Random
  /** The last value that was read, with its key. */
  #found: { readonly key: string; readonly value: string; readonly version: number } | undefined

  constructor(who: string, store: Store, link: Link, random: Random) {
    this.#who = who
    this.#store = store
    this.#link = link
    this.#random = random
  }

  async once(): Promise<void> {
    const call = this.#link.nextCall()
    const from = systemClock.now()
    const key = `${Math.floor(from / AGE)}-${this.#random.below(KEYS)}`
    const dice = this.#random.below(4)
    const value = `${this.#who} ${call}`
    const base = { who: this.#who, key, from }
    const known = this.#found?.key === key ? this.#found : { value: '', version: 0 }
    const storeCall: StoreCall =
      dice < 2
        ? { ...base, kind: 'get' }
        : dice === 2
          ? { ...base, kind: 'put', value }
          : { ...base, kind: 'compareAndSet', value, expected: known.value }
    this.#link.report({ say: 'storeCall', call, storeCall })
    const outcome = await this.#outcome(storeCall, known.version)
    this.#link.report({ say: 'storeCalled', call, at: systemClock.now(), ...outcome })
  }

  async #outcome({ kind, key, value }: StoreCall, expected: number): Promise<Settled> {
    try {
      if (kind === 'get') {
        const entry = await this.#store.get<string>(key)
        this.#found = { key, value: entry?.value ?? '', version: entry?.version ?? 0 }
        return { end: 'done', value: this.#found.value, version: this.#found.version }
      }
      if (kind === 'put') return { end: 'done', version: await this.#store.put(key, value) }
      const version = await this.#store.compareAndSet(key, expected, value)
      return version === undefined ? { end: 'conflict' } : { end: 'done', version }
    } catch (error) {
      if (!(error instanceof SignalboxError)) throw error
      if (error.code === 'UNAVAILABLE') return { end: 'refused' }
      if (error.code === 'INDETERMINATE') return { end: 'unknown' }
      throw error
    }
  }
}
