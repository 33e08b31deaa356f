import type { HazelcastJsonValue, IMap } from 'hazelcast-client'
import type { Clock } from 'signalbox/engine'
import { answered } from './call.js'

type Values = IMap<string, HazelcastJsonValue>

/** A listener of a key. */
interface Watched {
  readonly map: Values
  readonly listener: Promise<string>
}

/** Listens to the changes of single keys. */
export class EntryWatch {
  readonly #map: () => Promise<Values>
  readonly #clock: Clock
  readonly #changed: (key: string) => void
  readonly #watched = new Map<string, Watched>()

  /** @param changed is called when the value of a key may have changed. */
  constructor(map: () => Promise<Values>, clock: Clock, changed: (key: string) => void) {
    this.#map = map
    this.#clock = clock
    this.#changed = changed
  }

  /** Begins to listen to a key. @throws errors of the client */
  async watch(key: string): Promise<void> {
    if (this.#watched.has(key)) return
    const map = await this.#map()
    const watched = { map, listener: this.#listen(map, key) }
    this.#watched.set(key, watched)
    try {
      await answered(watched.listener, this.#clock)
    } catch (error) {
      if (this.#watched.get(key) === watched) this.#watched.delete(key)
      throw error
    }
  }

  /** Stops listening to a key. Never throws. */
  unwatch(key: string): void {
    const watched = this.#watched.get(key)
    this.#watched.delete(key)
    watched?.listener.then(
      id => watched.map.removeEntryListener(id).catch(() => undefined),
      () => undefined,
    )
  }

  /** Listens with a new client, if the last one was replaced. @throws errors of the client */
  async again(): Promise<void> {
    const map = await this.#map()
    for (const [key, watched] of this.#watched) {
      if (watched.map === map) continue
      // mutant: listener-of-old-client
      this.#watched.delete(key)
      await this.watch(key)
    }
  }

  #listen(map: Values, key: string): Promise<string> {
    let newest = 0
    const changed = ({ value }: { value: HazelcastJsonValue | null }): void => {
      // Most changes are about locks.
      const stamp = /^\{"stamp":(\d+),/.exec(value?.toString() ?? '')?.[1]
      if (stamp !== undefined && Number(stamp) <= newest) return
      newest = Number(stamp ?? 0)
      this.#changed(key)
    }
    return map.addEntryListener({ added: changed, updated: changed, removed: changed }, key, true)
  }
}
