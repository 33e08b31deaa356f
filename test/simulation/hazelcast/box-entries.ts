import type { IMap } from 'hazelcast-client'

/** Sends a call on a key. */
type Send = <T>(key: string, name: string, apply: () => T) => Promise<T>

/** The entries of boxes in memory. They expire after a while. */
export class BoxEntries {
  readonly #entries = new Map<string, { readonly text: string; readonly until: number }>()
  readonly #now: () => number

  /** @param now returns the time of the members, in milliseconds */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Returns the entries as a box sees them. */
  map(send: Send): IMap<string, string> {
    const map = {
      set: (key: string, text: string, ttl?: number) =>
        send(key, `set ${text}`, () => this.#set(key, text, ttl)),
      putIfAbsent: (key: string, text: string, ttl?: number) =>
        send(key, `putIfAbsent ${text}`, () => {
          const [present] = this.#at([key])
          if (!present) this.#set(key, text, ttl)
          return present?.[1] ?? null
        }),
      getAll: (keys: readonly string[]) => send(keys.join(), 'getAll', () => this.#at(keys)),
      keySet: () => send('', 'keySet', () => this.#at([...this.#entries.keys()]).map(([key]) => key)),
      delete: (key: string) => send(key, 'delete', () => void this.#entries.delete(key)),
    }
    return map as unknown as IMap<string, string>
  }

  #set(key: string, text: string, ttl = Infinity): void {
    this.#entries.set(key, { text, until: this.#now() + ttl })
  }

  #at(keys: readonly string[]): [key: string, text: string][] {
    return keys.flatMap(key => {
      const entry = this.#entries.get(key)
      return entry && this.#now() < entry.until ? [[key, entry.text]] : []
    })
  }
}
