import type { List } from '../contract.js'

/** The first keys of a {@link List}, for engines that find keys in no order. Keeps twice its limit at most. */
export class FirstKeys {
  readonly #list: Omit<List, 'type'>
  /** Each key once, in the order in which they were found since the last cut. */
  #found = new Set<string>()
  /** No later key is among the first ones. */
  #last: string | undefined

  constructor(list: Omit<List, 'type'>) {
    this.#list = list
  }

  add(key: string): void {
    const { prefix, after, limit } = this.#list
    if (key <= after || !key.startsWith(prefix) || (this.#last !== undefined && key >= this.#last)) return
    this.#found.add(key)
    if (this.#found.size < 2 * limit) return
    const first = this.inOrder()
    this.#found = new Set(first)
    this.#last = first.at(-1)
  }

  /** Returns them in the order of their UTF-16 code units. */
  inOrder(): string[] {
    return [...this.#found].sort().slice(0, this.#list.limit)
  }
}

/** Returns the first of these keys, in the order of their UTF-16 code units. */
export function firstKeys(keys: Iterable<string>, list: Omit<List, 'type'>): string[] {
  const first = new FirstKeys(list)
  for (const key of keys) first.add(key)
  return first.inOrder()
}
